"""Converts between fields of forms and texts: one per language, values of variables, a message."""

from collections.abc import Sequence
from dataclasses import asdict

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.dashboard import PostedForm
from msgsvc_core.dashboard.writing import MessageForm
from msgsvc_core.kernel.i18n import Localized


def read_text(form: PostedForm, name: str, languages: Sequence[str]) -> Localized:
    """Texts by language; one for all if only a single language has one."""
    texts: dict[str, str] = {}
    for lang in languages:
        if (text := form.text(f"{name}-{lang}")).strip():
            texts[lang] = text
    return texts if len(texts) > 1 else next(iter(texts.values()), "")


def by_language(text: Localized | None, default_lang: str) -> dict[str, str]:
    """The text of each language that has one; a text for all is that of the default language."""
    if text is None:
        return {}
    return {default_lang: text} if isinstance(text, str) else {str(k): v for k, v in text.items()}


def read_variables(form: PostedForm) -> dict[str, str]:
    """Values entered for the variables of a template; empty ones use the default."""
    return {
        name.removeprefix("var-"): form.text(name)
        for name in form.values
        if name.startswith("var-") and form.text(name)
    }


def of_message(message: OutgoingMessage) -> PostedForm:
    """The form values of a message."""
    content = {
        "text": message.text,
        "format": message.format,
        "media": asdict(message.media) if message.media else None,
        "buttons": [[asdict(button) for button in row] for row in message.buttons],
    }
    return PostedForm(MessageForm.values_of(content))
