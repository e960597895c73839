"""Texts of the bot, in the language of the service."""

from pathlib import Path

import pytest

import msgsvc_matrix
from msgsvc_core.kernel.i18n import Texts
from msgsvc_matrix.texts import OwnTexts

LOCALE = Path(msgsvc_matrix.__file__).parent / "locale"


@pytest.mark.parametrize(("lang", "said"), [("en", "encrypted messages"), ("ru", "зашифрованные")])
def test_the_bot_speaks_the_language_of_the_service(lang: str, said: str) -> None:
    texts = OwnTexts(Texts([("msgsvc_matrix", LOCALE)], "en"), lang)

    assert said in texts.encrypted
