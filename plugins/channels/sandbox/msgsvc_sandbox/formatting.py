"""The core's spans for the page, with bare URLs as links, like in every messenger."""

import re
from collections.abc import Iterable

from msgsvc_core.content import markup
from msgsvc_core.content.outgoing import Format
from msgsvc_sandbox.models import Span

_ADDRESS = re.compile(r"https?://[^\s<>\"]+[^\s<>\".,:;!?'\)\]]")


def to_spans(text: str, text_format: Format) -> list[Span]:
    """The spans of a message; concatenated, their texts are the visible text."""
    return [
        Span(text=span.text, marks=list(span.marks), href=href)
        for span in markup.to_spans(text, text_format)
        for span, href in _with_addresses(span)
        if span.text
    ]


def _with_addresses(span: markup.Span) -> Iterable[tuple[markup.Span, str | None]]:
    """`span` in pieces, each with where it leads; not inside code."""
    if span.href or {"code", "pre"} & set(span.marks):
        yield span, span.href
        return
    end = 0
    for match in _ADDRESS.finditer(span.text):
        yield markup.like(span, span.text[end : match.start()]), None
        yield markup.like(span, match[0]), match[0]
        end = match.end()
    yield markup.like(span, span.text[end:]), None
