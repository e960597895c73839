"""Parses the Markdown of a message in time linear in its length.

A mark opens where its signs precede text, and closes at the first matching signs after text; escapes and
code are skipped. A regular expression that searches the end from each opening takes quadratic time if there
is none, so ends are looked up in lists built once per text.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable

from msgsvc_core.content.spans import Mark, Span, safe_href

#: Maximum nesting of marks; deeper ones are text.
MAX_DEPTH = 8

_ESCAPED = re.compile(r"\\([\\`*_~\[\]()\#+.!>\s-])")

_PIECE = re.compile(
    r"""
      \\(?P<escaped>[\\`*_~\[\]()\#+.!>\s-])
    | ```(?:\w*\n)?(?P<pre>.+?)\n?```
    | `(?P<code>[^`\n]+)`
    | (?P<label>\[)
    | (?P<signs>\*\*?|~~|(?<!\w)__?)
    """,
    re.VERBOSE | re.DOTALL,
)

_MARKS: dict[str, Mark] = {
    "**": "bold",
    "__": "bold",
    "~~": "strike",
    "*": "italic",
    "_": "italic",
}

#: Ends of a mark, whatever precedes them.
_ENDS = {
    "**": re.compile(r"(?=\*\*(?!\*))"),
    "__": re.compile(r"(?=__(?!\w))"),
    "~~": re.compile(r"(?=~~)"),
    "*": re.compile(r"(?=\*)"),
    "_": re.compile(r"(?=_(?!\w))"),
}
#: Ends of a mark after text, with no space before them.
_ENDS_AFTER_TEXT = {signs: re.compile(rf"(?<=\S){end.pattern}") for signs, end in _ENDS.items()}

_SPECIAL = re.compile(r"[\\`]")
_IN_LABEL = re.compile(r"[\[\]\\\n`]")
_ADDRESS = re.compile(r"\]\(([^()\s]+)\)")
_CODE = re.compile(r"`[^`\n]+`")


def from_markdown(text: str) -> Iterable[Span]:
    return _read(text, (), 0)


def _read(text: str, marks: tuple[Mark, ...], depth: int) -> Iterable[Span]:
    ends, labels = _Ends(text), _Labels(text)
    done = place = 0
    while depth < MAX_DEPTH and (match := _PIECE.search(text, place)):
        if signs := match["signs"]:
            found = _marked(ends, signs, match.start())
            if found is None:
                place = match.start() + 1
                continue
            signs, end = found
            yield Span(text[done : match.start()], marks)
            inside = text[match.start() + len(signs) : end]
            # As in HTML, a mark within the same mark has no effect.
            inner = tuple(dict.fromkeys((*marks, _MARKS[signs])))
            yield from _read(inside, inner, depth + 1)
            done = place = end + len(signs)
        elif match["label"]:
            address = labels.address(match.end())
            if address is None:
                place = match.end()
                continue
            yield Span(text[done : match.start()], marks)
            yield _link(
                text[match.start() : address.end()],
                text[match.end() : address.start()],
                address[1],
                marks,
            )
            done = place = address.end()
        else:
            yield Span(text[done : match.start()], marks)
            yield _piece(match, marks)
            done = place = match.end()
    yield Span(text[done:], marks)


def _piece(match: re.Match[str], marks: tuple[Mark, ...]) -> Span:
    if (escaped := match["escaped"]) is not None:
        return Span(escaped, marks)
    if (pre := match["pre"]) is not None:
        return Span(pre, (*marks, "pre"))
    return Span(match["code"], (*marks, "code"))


def _link(written: str, label: str, address: str, marks: tuple[Mark, ...]) -> Span:
    href = safe_href(address)
    # A label whose URL is rejected stays visible as written.
    return Span(_ESCAPED.sub(r"\1", label) if href else written, marks, href)


def _marked(ends: "_Ends", signs: str, start: int) -> tuple[str, int] | None:
    """The mark opened at a position, and its end. Two signs may be one sign and text."""
    for tried in (signs, signs[0]) if signs in {"**", "__"} else (signs,):
        end = ends.first(tried, start + len(tried))
        if end is not None:
            return tried, end
    return None


class _Labels:
    """The ends of link labels in a text, and their URLs."""

    def __init__(self, text: str) -> None:
        self._text = text
        #: The end of a label by the end of an escape or code within it.
        self._ends: dict[int, int] = {}
        self._addresses: dict[int, re.Match[str] | None] = {}

    def address(self, start: int) -> re.Match[str] | None:
        """The URL of a label that starts at a position; None if it is not a label."""
        end = self._end(start)
        if end == start:
            return None
        if end not in self._addresses:
            self._addresses[end] = _ADDRESS.match(self._text, end)
        return self._addresses[end]

    def _end(self, start: int) -> int:
        passed: list[int] = []
        text, place = self._text, start
        while place not in self._ends:
            passed.append(place)
            special = _IN_LABEL.search(text, place)
            at = special.start() if special else len(text)
            if special and special[0] == "`":
                code = _CODE.match(text, at)
                place = code.end() if code else at + 1
            elif special and special[0] == "\\" and at + 1 < len(text):
                place = at + 2
            else:
                self._ends[place] = at
        for one in passed:
            self._ends[one] = self._ends[place]
        return self._ends[place]


class _Ends:
    """The ends of the marks of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._special = [match.start() for match in _SPECIAL.finditer(text)]
        self._after_text: dict[str, list[int]] = {}
        #: By signs: the first end after the end of an escape or of code.
        self._from: dict[str, dict[int, int | None]] = {}
        #: The end of each escape or code, by its start.
        self._whole: dict[int, int | None] = {}
        self._no_fence_from = len(text)

    def first(self, signs: str, start: int) -> int | None:
        """The first end of a mark whose text starts at a position; None if there is none."""
        if start >= len(self._text) or self._text[start].isspace():
            return None
        known = self._from.setdefault(signs, {})
        passed: list[int] = []
        place: int | None = start
        end: int | None = None
        is_after_whole = False
        while place is not None:
            if is_after_whole:
                if place in known:
                    end = known[place]
                    break
                passed.append(place)
            end, place = self._step(signs, place, is_after_whole=is_after_whole)
            is_after_whole = True
        for one in passed:
            known[one] = end
        return end

    def _step(
        self, signs: str, place: int, *, is_after_whole: bool
    ) -> tuple[int | None, int | None]:
        """The end of the mark, if it comes before the next escape or code; otherwise the end of that, if
        any."""
        if is_after_whole and _ENDS[signs].match(self._text, place):
            return place, None
        index = bisect_left(self._special, place)
        special = self._special[index] if index < len(self._special) else None
        ends = self._after_text.get(signs)
        if ends is None:
            found = _ENDS_AFTER_TEXT[signs].finditer(self._text)
            ends = self._after_text[signs] = [match.start() for match in found]
        index = bisect_left(ends, place + 1)
        if index < len(ends) and (special is None or ends[index] < special):
            return ends[index], None
        return None, None if special is None else self._end_of_whole(special)

    def _end_of_whole(self, start: int) -> int | None:
        if start not in self._whole:
            self._whole[start] = self._read_whole(start)
        return self._whole[start]

    def _read_whole(self, start: int) -> int | None:
        text = self._text
        if text[start] == "\\":
            return start + 2 if start + 2 <= len(text) else None
        if text.startswith("```", start) and start < self._no_fence_from:
            fence = text.find("```", start + 4)
            if fence >= 0:
                return fence + 3
            self._no_fence_from = start
        code = _CODE.match(text, start)
        return code.end() if code else start + 1
