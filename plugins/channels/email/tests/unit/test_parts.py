"""The plugin's objects one by one."""

from pathlib import Path

import msgsvc_email
from msgsvc_core.kernel.i18n import Texts
from msgsvc_email.texts import EmailTexts

LOCALE = Path(msgsvc_email.__file__).parent / "locale"


def test_what_the_channel_adds_is_in_its_language() -> None:
    texts = EmailTexts(Texts([("msgsvc_email", LOCALE)], "en"))

    assert [texts.into(lang)("Unsubscribe") for lang in ("en", "ru")] == [
        "Unsubscribe",
        "Отписаться",
    ]
