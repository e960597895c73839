"""Converts the fields of a form to a message's content, and back."""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.i18n import Localized
from msgsvc_core.messages.templates.models import TemplateContent

#: Rows and buttons in each that a form offers: those that a message may have.
ROWS, COLUMNS = 3, 3


def read_content(form: PostedForm, languages: Sequence[str] = ()) -> dict[str, Any]:
    """`text`, `format`, `media` and `buttons` as in the bodies of the API, not validated yet. With
    `languages` there is a text for each."""
    text: Any = read_text(form, "text", languages) if languages else form.text("text")
    content: dict[str, Any] = {
        "text": text,
        "format": form.text("format") or "plain",
        "buttons": _buttons(form, languages),
    }
    if form.text("media_type"):
        content["media"] = {
            "type": form.text("media_type"),
            "url": form.text("media_url").strip(),
            "filename": form.text("media_filename").strip() or None,
        }
    return content


def read_text(form: PostedForm, name: str, languages: Sequence[str]) -> Localized:
    """Texts by language; one for all if only a single language has one."""
    texts: dict[str, str] = {}
    for lang in languages:
        if (text := form.text(f"{name}-{lang}")).strip():
            texts[lang] = text
    return texts if len(texts) > 1 else next(iter(texts.values()), "")


def read_variables(form: PostedForm) -> dict[str, str]:
    """Values entered for the variables of a template; empty ones use the default."""
    return {
        name.removeprefix("var-"): form.text(name)
        for name in form.values
        if name.startswith("var-") and form.text(name)
    }


def of_message(message: OutgoingMessage) -> dict[str, str]:
    """The form values of a message, by name."""
    fields = {"text": message.text, "format": message.format}
    if message.media is not None:
        media = message.media
        fields |= _media(media.type, media.url, media.filename)
    for place, button in _places(message.buttons):
        fields |= {f"{place}-text": button.text, **_action(place, button.url, button.data)}
    return fields


def of_template(content: TemplateContent, default_lang: str) -> dict[str, str]:
    """Likewise, of a template: texts once per language."""
    fields: dict[str, str] = {
        "format": content.format,
        **_texts("text", content.text, default_lang),
    }
    if content.media is not None:
        media = content.media
        fields |= _media(media.type, media.url, media.filename)
    for place, button in _places(content.buttons):
        fields |= _texts(f"{place}-text", button.text, default_lang)
        fields |= _action(place, button.url, button.data)
    return fields


def by_language(text: Localized | None, default_lang: str) -> dict[str, str]:
    """The text of each language that has one; a text for all is that of the default language."""
    if text is None:
        return {}
    return {default_lang: text} if isinstance(text, str) else {str(k): v for k, v in text.items()}


def _buttons(form: PostedForm, languages: Sequence[str]) -> list[list[dict[str, Any]]]:
    rows = []
    for row in range(ROWS):
        found = [
            button
            for column in range(COLUMNS)
            if (button := _button(form, f"b-{row}-{column}", languages))
        ]
        if found:
            rows.append(found)
    return rows


def _button(form: PostedForm, place: str, languages: Sequence[str]) -> dict[str, Any] | None:
    """None where nothing was typed."""
    name = f"{place}-text"
    text: Any = read_text(form, name, languages) if languages else form.text(name).strip()
    value = form.text(f"{place}-value").strip()
    if not text and not value:
        return None
    return {"text": text, form.text(f"{place}-kind") or "url": value}


def _places(rows: Any) -> list[tuple[str, Any]]:
    return [
        (f"b-{row}-{column}", button)
        for row, buttons in enumerate(rows)
        for column, button in enumerate(buttons)
    ]


def _texts(name: str, text: Localized, default_lang: str) -> dict[str, str]:
    return {f"{name}-{lang}": each for lang, each in by_language(text, default_lang).items()}


def _media(kind: str, url: str, filename: str | None) -> dict[str, str]:
    return {"media_type": kind, "media_url": url, "media_filename": filename or ""}


def _action(place: str, url: str | None, data: str | None) -> dict[str, str]:
    kind = "url" if url is not None else "data"
    return {f"{place}-kind": kind, f"{place}-value": url or data or ""}
