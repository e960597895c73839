"""A message's text in WhatsApp's markup: `*bold*`, `_italic_`, `~strike~` and code between three backticks.

The markup has no escape, and counts only where it stands between blanks, punctuation or the ends of the
text. So a run is formatted where that is certain to work, and is plain text elsewhere; what would be taken
for markup in a text is kept from it by an invisible joiner, and backticks, which nothing keeps from it,
become accents that look the same."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from msgsvc_core.content.markup import Mark, Span, joined, utf16_length, with_addresses

#: Invisible, of no width, and neither a blank nor punctuation (U+2060, WORD JOINER).
JOINER = "\u2060"

#: Looks like a backtick (U+02CB, MODIFIER LETTER GRAVE ACCENT).
GRAVE = "\u02cb"

#: How a look is written; underlined text has no markup.
DELIMITERS: dict[Mark, str] = {
    "bold": "*",
    "italic": "_",
    "strike": "~",
    "code": "```",
    "pre": "```",
}

_CODE = frozenset({"code", "pre"})

#: Punctuation beside which markup counts.
_EDGES = frozenset(".,;:!?()[]\"'«»…/")

#: What begins a list or a quote at the start of a line.
_LINE_START = re.compile(r"[*-] |>|\d+\. ")

#: Does not stand after a letter or digit, so that it could begin something.
_OPENING = re.compile(r"(?<![^\W_])[*_~]")


@dataclass(frozen=True, slots=True)
class Written:
    """A text in WhatsApp's markup, and how it looks."""

    text: str
    spans: list[Span]


@dataclass(frozen=True, slots=True)
class _Piece:
    """`left` are marks that may still be applied, `made` those that are."""

    text: str
    left: tuple[Mark, ...]
    made: tuple[Mark, ...] = ()


def written(spans: Sequence[Span], limit: int) -> Written:
    """The spans in markup. If that is longer than `limit` (UTF-16 code units), the text without it."""
    shown = with_addresses(spans)
    pieces = [piece for span in shown for piece in _pieces(span)]
    text, looks = _render(pieces, "", "")
    if utf16_length(text) > limit:
        plain = "".join(span.text for span in shown)
        text, looks = _literal(plain), [Span(plain)]
        if utf16_length(text) > limit:
            text = plain
    return Written(text, joined(looks))


def plain_line(spans: Sequence[Span]) -> str:
    """The text in one line, without markup: the form that a template's variable has to have."""
    return " ".join("".join(span.text for span in with_addresses(spans)).split())


def _pieces(span: Span) -> list[_Piece]:
    code = tuple(mark for mark in span.marks if mark in _CODE)[:1]
    marks = code or tuple(mark for mark in span.marks if mark in DELIMITERS)
    if code or not marks:
        return [_Piece(span.text, marks)]
    # Markup ends with its line, and has no blank at its edges.
    lines = re.split(r"([^\S\n]*\n\s*|^\s+|\s+$)", span.text)
    return [_Piece(part, () if part.isspace() else marks) for part in lines if part]


def _render(pieces: Sequence[_Piece], before: str, after: str) -> tuple[str, list[Span]]:
    """The markup of pieces between two characters, which are empty at an edge."""
    text, looks, at = "", [], 0
    for mark, found in groupby(pieces, key=lambda piece: piece.left[:1]):
        run = list(found)
        inside = "".join(piece.text for piece in run)
        previous = pieces[at - 1].text[-1] if at else before
        at += len(run)
        following = pieces[at].text[0] if at < len(pieces) else after
        if not mark:
            text += _literal(inside, starts_line=previous in {"", "\n"})
            looks += [Span(piece.text, piece.made) for piece in run]
        elif _counts(mark[0], inside, previous, following):
            sign = DELIMITERS[mark[0]]
            if mark[0] in _CODE:
                part, inner = inside, [Span(inside, (*run[0].made, mark[0]))]
            else:
                nested = [_Piece(one.text, one.left[1:], (*one.made, mark[0])) for one in run]
                part, inner = _render(nested, "", "")
            text, looks = text + sign + part + sign, looks + inner
        else:
            without = [_Piece(one.text, one.left[1:], one.made) for one in run]
            part, inner = _render(without, previous, following)
            text, looks = text + part, looks + inner
    return text, looks


def _counts(mark: Mark, inside: str, before: str, after: str) -> bool:
    """Whether markup around a run is certain to be taken for such."""
    sign = DELIMITERS[mark]
    return (
        _is_edge(before)
        and _is_edge(after)
        and sign[0] not in inside
        and not inside[0].isspace()
        and not inside[-1].isspace()
    )


def _is_edge(character: str) -> bool:
    return not character or character.isspace() or character in _EDGES


def _literal(text: str, *, starts_line: bool = True) -> str:
    """A text that is shown as it is."""
    shown = _OPENING.sub(lambda found: JOINER + found[0], text)
    lines = shown.split("\n")
    kept = [
        JOINER + line if (number or starts_line) and _LINE_START.match(line) else line
        for number, line in enumerate(lines)
    ]
    return "\n".join(kept).replace("`", GRAVE)
