"""Texts of the bot, in the language of the service."""

import pytest

from msgsvc_devkit.fakes import plugin_context
from msgsvc_matrix import plugin
from msgsvc_matrix.texts import OwnTexts


@pytest.mark.parametrize(("lang", "said"), [("en", "encrypted messages"), ("ru", "зашифрованные")])
def test_the_bot_speaks_the_language_of_the_service(lang: str, said: str) -> None:
    texts = OwnTexts(plugin_context(plugin=plugin).texts, lang)

    assert said in texts.encrypted
