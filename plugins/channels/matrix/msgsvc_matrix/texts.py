"""System messages of the bot."""

from msgsvc_core.kernel.i18n import Texts, Translate, package_of


class OwnTexts:
    """Its texts, in the service's default language: Matrix tells no language of a person."""

    def __init__(self, texts: Texts, lang: str) -> None:
        self._texts = texts
        self._lang = lang

    @property
    def _translate(self) -> Translate:
        return self._texts.into(self._lang, package_of(OwnTexts))

    @property
    def direct_only(self) -> str:
        """Why an invitation into a group is declined."""
        _ = self._translate
        return _("I only take part in direct chats. Please start one with me.")

    @property
    def other_server(self) -> str:
        """Why an invitation by a user of another server is declined."""
        _ = self._translate
        return _("I only talk to users of certain servers, and yours is not one of them.")

    @property
    def encrypted(self) -> str:
        """The answer to encryption, which the bot does not support."""
        _ = self._translate
        return _(
            "I can't read encrypted messages. Please start another chat with me, without encryption."
        )
