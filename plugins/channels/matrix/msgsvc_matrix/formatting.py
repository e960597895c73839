"""A message in Matrix's format: plain text, and HTML where it is formatted (module "Instant Messaging")."""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from msgsvc_core.content.markup import Span, to_spans
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.spans import Mark

#: The format of `formatted_body`.
HTML = "org.matrix.custom.html"

#: Bytes of `formatted_body`. An event has at most 65,536 ("Size limits"), and an edit
#: holds the text of 4,000 characters two times besides it.
MAX_HTML_BYTES = 24_000

_TAGS: dict[Mark, str] = {
    "bold": "strong",
    "italic": "em",
    "underline": "u",
    "strike": "del",
    "code": "code",
}

#: Half of a surrogate pair, which is no text.
_HALF = re.compile("[\ud800-\udfff]")

#: White space that HTML would show as one space.
_COLLAPSING = re.compile(r"(?<= ) |^ | $|\t", re.MULTILINE)


def text_fields(message: OutgoingMessage) -> dict[str, Any]:
    """`body` and, if anything is formatted, `format` and `formatted_body`."""
    spans = appearance(message)
    body = "".join(map(_plain, spans))
    if not _is_formatted(spans):
        return {"body": body}
    return {"body": body, "format": HTML, "formatted_body": _html(spans)}


def appearance(message: OutgoingMessage) -> list[Span]:
    """The text as displayed: formatted, if there is room for the HTML."""
    spans = to_spans(message.text, message.format)
    if _is_formatted(spans) and len(_html(spans).encode("utf-8", "replace")) > MAX_HTML_BYTES:
        return [Span("".join(span.text for span in spans))]
    return spans


def problem_of(message: OutgoingMessage) -> str | None:
    """Why the homeserver would refuse a message that is short enough."""
    if _HALF.search(message.text):
        return "text: holds half of a character"
    if message.media is None and not message.text.strip():
        return "text: shows nothing"
    spans = to_spans(message.text, message.format)
    if len(_html(spans).encode()) > MAX_HTML_BYTES and any(span.href for span in spans):
        # Without its HTML it would lose its links.
        return f"text: must be at most {MAX_HTML_BYTES} bytes with its links on this channel"
    return None


def _is_formatted(spans: Sequence[Span]) -> bool:
    return any(span.marks or span.href for span in spans)


def _plain(span: Span) -> str:
    """For notifications and clients that show no HTML: a link's address follows its text."""
    if span.href is None or span.href == span.text:
        return span.text
    return f"{span.text} ({span.href})"


def _html(spans: Sequence[Span]) -> str:
    return "".join(map(_tagged, spans))


def _tagged(span: Span) -> str:
    text = escape(span.text, quote=False)
    if "pre" in span.marks:
        text = f"<pre><code>{text}</code></pre>"
    else:
        text = _COLLAPSING.sub(lambda found: "&nbsp;" * (4 if found[0] == "\t" else 1), text)
        text = text.replace("\n", "<br />")
    for mark in reversed(span.marks):
        if mark in _TAGS and not ("pre" in span.marks and mark == "code"):
            text = f"<{_TAGS[mark]}>{text}</{_TAGS[mark]}>"
    return text if span.href is None else f'<a href="{escape(span.href)}">{text}</a>'
