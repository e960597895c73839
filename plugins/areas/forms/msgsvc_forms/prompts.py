"""The texts of a conversation: their language and buttons."""

from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.kernel.i18n import Texts
from msgsvc_forms.dialogue import Script, State
from msgsvc_forms.dialogue.wording import Wording
from msgsvc_forms.dialogue_store import Dialogue
from msgsvc_forms.models import Form
from msgsvc_forms.service import Forms

#: Prefix of this plugin's button data, after `~`.
BUTTON = "form:"


class Prompts:
    """Makes the texts of a conversation for the user who fills in the form."""

    def __init__(
        self, *, texts: Texts, default_lang: str, channels: Channels, forms: Forms
    ) -> None:
        self._texts = texts
        self._default_lang = default_lang
        self._channels = channels
        self._forms = forms

    def script(self, form: Form, lang: str) -> Script:
        """The form as a reader of `lang` is asked it."""
        return Script(form.definition, lang, self._default_lang)

    def wording(self, dialogue: Dialogue, state: State, form: Form, lang: str) -> Wording:
        """What the bot says at this point of a conversation."""

        def data(action: str, argument: str) -> str:
            parts = [dialogue.dialogue_id, str(state.turn), action]
            return OWN_BUTTON + BUTTON + ":".join([*parts, argument] if argument else parts)

        channel = self._channels.get(dialogue.channel)
        shown = channel is None or channel.capabilities.buttons == "native"
        _ = self._texts.into(lang, __name__)
        return Wording(self.script(form, lang), state, _, data, buttons_shown=shown)

    async def offered(self, tx: Tx, state: State, form: Form, lang: str) -> str | None:
        """The title of another form that was opened."""
        if state.offer is None:
            return None
        other = await self._forms.find_started(tx, state.offer)
        if other is None or other.form_id == form.form_id:
            return None
        return self.script(other, lang).title
