"""A message's text for Telegram: plain text, with formatting as entities.

Unlike markup, entities can't be broken by a project's text.
"""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.channels import Format
from msgsvc_core.content.markup import Span, to_spans, utf16_length

#: Telegram shows the rest of a message's entities as plain text.
MAX_ENTITIES = 100

#: No text can have more entities than this many times its length: each needs two signs and a letter.
_SHORTEST_MARKUP = 3

_TYPES = {"strike": "strikethrough"}

Entity = dict[str, Any]

#: A look that spans share: a mark, or an address.
_Look = tuple[str, str]


def formatted(text: str, text_format: Format) -> tuple[str, list[Entity]]:
    """The text that is shown, and its entities; offsets and lengths are in UTF-16 code units."""
    if text_format == "plain":
        return text, []
    spans = to_spans(text, text_format)
    entities: list[Entity] = []
    _add_entities(entities, [(span, _looks(span)) for span in spans], 0)
    return "".join(span.text for span in spans), entities


def appearance(text: str, text_format: Format) -> list[Span]:
    """How `formatted` is displayed in a chat: code has no other formatting, and links are not code."""
    return [_as_shown(span) for span in to_spans(text, text_format)]


def _as_shown(span: Span) -> Span:
    code = tuple(mark for mark in span.marks if mark in {"pre", "code"})
    if span.href is None and code:
        return Span(span.text, code[:1])
    return Span(span.text, tuple(mark for mark in span.marks if mark not in code), span.href)


def too_many_entities(text: str, text_format: Format) -> bool:
    """Whether part of the formatting would be lost."""
    if text_format == "plain" or len(text) <= MAX_ENTITIES * _SHORTEST_MARKUP:
        return False
    return len(formatted(text, text_format)[1]) > MAX_ENTITIES


def _looks(span: Span) -> tuple[_Look, ...]:
    """What the span looks like, the outermost first.

    Telegram lets code stand in nothing and hold nothing, so a link wins over code, and code over the
    rest.
    """
    code = next((mark for mark in span.marks if mark in {"pre", "code"}), None)
    if span.href is None and code is not None:
        return ((code, ""),)
    looks = [(_TYPES.get(mark, mark), "") for mark in span.marks if mark not in {"pre", "code"}]
    if span.href is not None:
        looks.append(("text_link", span.href))
    return tuple(looks)


def _add_entities(
    entities: list[Entity], spans: Sequence[tuple[Span, tuple[_Look, ...]]], offset: int
) -> None:
    """Adds an entity for each run of spans with the same outermost look, and what is inside of it.

    So entities are either apart or one within the other, which Telegram asks for.
    """
    start = 0
    while start < len(spans):
        look = spans[start][1][:1]
        end = start + 1
        while end < len(spans) and spans[end][1][:1] == look:
            end += 1
        run = spans[start:end]
        length = sum(utf16_length(span.text) for span, _ in run)
        if look:
            kind, href = look[0]
            entity: Entity = {"type": kind, "offset": offset, "length": length}
            entities.append(entity | {"url": href} if href else entity)
            _add_entities(entities, [(span, looks[1:]) for span, looks in run], offset)
        offset += length
        start = end
