"""The texts that the channel adds to messages."""

from msgsvc_core.kernel.i18n import Texts, Translate


class EmailTexts:
    """The service's texts, for channels, which are created before them."""

    def __init__(self, texts: Texts) -> None:
        self.all = texts

    def into(self, lang: str) -> Translate:
        return self.all.into(lang, __name__)
