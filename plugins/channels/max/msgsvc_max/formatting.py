"""A message in the platform's format: text with markup, keyboard, and unsupported content."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from msgsvc_core.content.markup import HTML_MARKS, Span, to_spans, utf16_length
from msgsvc_core.content.outgoing import Button, OutgoingMessage

#: Length of the field `text`, markup included (schema: NewMessageBody). The schema does not say of
#: what; UTF-16 code units are the count that is never too low.
MAX_TEXT = 4000

#: Schema: Button, CallbackButton, LinkButton; rows and buttons: dev.max.ru, "Keyboard".
MAX_BUTTON_TEXT, MAX_PAYLOAD, MAX_URL = 128, 1024, 2048
MAX_ROWS, MAX_IN_ROW, MAX_IN_ROW_OF_LINKS = 30, 7, 3

#: How the platform spells a look in HTML. It has no way to escape its Markdown, so that is not used.
_TAGS = {mark: tag for tag, mark in reversed(HTML_MARKS.items())}

#: Half of a surrogate pair, which is no text.
_HALF = re.compile("[\ud800-\udfff]")


def text_fields(message: OutgoingMessage) -> dict[str, Any]:
    """The fields `text` and `format` (schema: NewMessageBody).

    Markup counts towards the length. A text that is too long with it is sent without formatting; its links
    are kept.
    """
    return _fields(appearance(message))


def appearance(message: OutgoingMessage) -> list[Span]:
    """The text as displayed: formatted, if there is room for the markup."""
    spans = to_spans(message.text, message.format)
    if utf16_length(_fields(spans)["text"]) > MAX_TEXT:
        return [Span(span.text, href=span.href) for span in spans]
    return spans


def keyboard(buttons: Sequence[Sequence[Button]]) -> list[dict[str, Any]]:
    """The attachment with the buttons; none if there are none."""
    if not buttons:
        return []
    rows = [[_button(button) for button in row] for row in buttons]
    return [{"type": "inline_keyboard", "payload": {"buttons": rows}}]


def problem_of(message: OutgoingMessage) -> str | None:
    """Why the platform would refuse a message that is short enough without its markup."""
    if _HALF.search(message.text):
        return "text: holds half of a character"
    if utf16_length(text_fields(message)["text"]) > MAX_TEXT:
        return f"text: must be at most {MAX_TEXT} UTF-16 code units with its links on this channel"
    if len(message.buttons) > MAX_ROWS:
        return f"buttons: must be at most {MAX_ROWS} rows on this channel"
    for number, row in enumerate(message.buttons):
        links = any(button.url is not None for button in row)
        limit = MAX_IN_ROW_OF_LINKS if links else MAX_IN_ROW
        if not 1 <= len(row) <= limit:
            what = "with a link among them " if links else ""
            return f"buttons[{number}]: must be 1-{limit} buttons {what}on this channel"
        for place, button in enumerate(row):
            if problem := _problem_of_button(button):
                return f"buttons[{number}][{place}].{problem}"
    return None


def _problem_of_button(button: Button) -> str | None:
    if not 1 <= utf16_length(button.text) <= MAX_BUTTON_TEXT:
        return f"text: must be 1-{MAX_BUTTON_TEXT} characters on this channel"
    if button.url is not None and utf16_length(button.url) > MAX_URL:
        return f"url: must be at most {MAX_URL} characters on this channel"
    if button.url is None and utf16_length(button.data or "") > MAX_PAYLOAD:
        return f"data: must be at most {MAX_PAYLOAD} characters on this channel"
    return None


def _fields(spans: Iterable[Span]) -> dict[str, Any]:
    spans = list(spans)
    if all(not span.marks and span.href is None for span in spans):
        return {"text": "".join(span.text for span in spans)}
    return {"text": "".join(map(_html, spans)), "format": "html"}


def _html(span: Span) -> str:
    text = escape(span.text, quote=False)
    for mark in reversed(span.marks):
        text = f"<{_TAGS[mark]}>{text}</{_TAGS[mark]}>"
    return text if span.href is None else f'<a href="{escape(span.href)}">{text}</a>'


def _button(button: Button) -> dict[str, Any]:
    if button.url is not None:
        return {"type": "link", "text": button.text, "url": button.url}
    return {"type": "callback", "text": button.text, "payload": button.data or ""}
