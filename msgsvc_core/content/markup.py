"""Parses the text formats of a message into spans: text with formatting and links, never scripts.

A channel writes spans in its platform's own markup, so a project's text can't break it.

Parsing never fails: meaningless markup is shown as text, unknown HTML tags are removed but their text is
kept, and an unclosed tag ends with the message.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Literal

from msgsvc_core.content.blocks import as_text, from_rich
from msgsvc_core.content.html_markup import HTML_MARKS, from_html, to_html
from msgsvc_core.content.markdown import MAX_DEPTH, from_markdown
from msgsvc_core.content.outgoing import Format
from msgsvc_core.content.spans import Mark, Span, joined, safe_href

__all__ = [
    "HTML_MARKS",
    "MAX_DEPTH",
    "Mark",
    "Span",
    "TextUnit",
    "clipped",
    "joined",
    "like",
    "safe_href",
    "to_html",
    "to_spans",
    "utf16_length",
    "visible_length",
    "with_addresses",
]

#: The unit in which a platform counts the length of a text.
TextUnit = Literal["characters", "utf16"]

#: Number of cached parsed texts: validation, the platform's form and the delivery log parse a message some
#: ten times, and a mailing sends one text to many recipients.
_KEPT_TEXTS = 256


def to_spans(text: str, text_format: Format) -> list[Span]:
    """The spans of a message; concatenated, their texts are the visible text.

    Blocks of the format `rich` are lines of it: `blocks.as_text`.
    """
    if text_format == "plain":
        return [Span(text)] if text else []
    return list(_read(text, text_format))


@lru_cache(maxsize=_KEPT_TEXTS)
def _read(text: str, text_format: Format) -> tuple[Span, ...]:
    return tuple(joined(_READERS[text_format](text)))


def _from_rich(text: str) -> Iterable[Span]:
    return as_text(from_rich(text))


_READERS: dict[Format, Callable[[str], Iterable[Span]]] = {
    "markdown": from_markdown,
    "html": from_html,
    "rich": _from_rich,
}


def visible_length(text: str, text_format: Format, unit: TextUnit = "characters") -> int:
    """The length of a text without its markup, in the platform's unit."""
    if text_format != "plain":
        text = "".join(span.text for span in to_spans(text, text_format))
    return len(text) if unit == "characters" else utf16_length(text)


def with_addresses(spans: Iterable[Span]) -> list[Span]:
    """The spans with the URL of a link in brackets after its label, for platforms that show labels alone:
    `our site (https://shop.example)`. A link whose label is its URL stays as it is."""
    shown: list[Span] = []
    for href, alike in groupby(spans, key=lambda span: span.href):
        labels = [replace(span, href=None) for span in alike]
        shown += labels
        label = "".join(span.text for span in labels).strip()
        if href is not None and label != href:
            shown.append(Span(f" ({href})"))
    return joined(shown)


def like(look: Span, text: str) -> Span:
    """Another text with the same formatting."""
    return replace(look, text=text)


def utf16_length(text: str) -> int:
    """Length in UTF-16 code units: two for a character outside the basic plane, such as most emoji."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clipped(text: str, limit: int) -> str:
    """The text cut to the limit, in the platform's unit."""
    if utf16_length(text) <= limit:
        return text
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * (limit - 1)]
    return kept.decode("utf-16-le", "ignore").rstrip() + "…"
