"""Parses the HTML of a message, leniently, in time linear in its length.

`html.parser` retries an unclosed tag for every later tag, and its handling of broken tags differs between
releases of Python. Here positions are looked up in lists that are built once per text.

A tag ends at the first `>` outside quotes; an unclosed one is text up to the next `>`. Comments, declarations
and unknown tags are removed. The content of `script` and `style` is text without markup, and removed if they
are not closed.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape, unescape
from typing import overload

from msgsvc_core.content.spans import Mark, Span, safe_href

#: The tags with a meaning, besides `a` and `br`.
HTML_MARKS: dict[str, Mark] = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strike",
    "strike": "strike",
    "del": "strike",
    "code": "code",
    "pre": "pre",
}

_PLAIN_TAG = re.compile(r"<[a-zA-Z][a-zA-Z0-9]*>")
_TAG_NAME = re.compile(r"([a-zA-Z][^\t\n\r\f />\x00]*)(?:\s|/(?!>))*")
_ATTRIBUTE = re.compile(
    r"((?<=['\"\s/])[^\s/>][^\s/=>]*)(\s*=+\s*('[^']*'|\"[^\"]*\"|(?!['\"])[^>\s]*))?(?:\s|/(?!>))*"
)
_END_TAG = re.compile(r"</\s*([a-zA-Z][-.a-zA-Z0-9:_]*)\s*>")
_END_TAG_NAME = re.compile(r"[a-zA-Z][^\t\n\r\f />\x00]*")
_SECTION = re.compile(r"([a-zA-Z][-_.a-zA-Z0-9]*)\s*")
#: Where sections of a document end, by what they are called.
_SECTION_ENDS = dict.fromkeys(("temp", "cdata", "ignore", "include", "rcdata"), r"\]\s*\]\s*>")
_SECTION_ENDS |= dict.fromkeys(("if", "else", "endif"), r"\]\s*>")
_RAW_END = {name: re.compile(rf"</\s*{name}\s*>", re.IGNORECASE) for name in ("script", "style")}


#: The tag of each mark.
_TAGS: dict[Mark, str] = {mark: tag for tag, mark in reversed(HTML_MARKS.items())}


@dataclass(frozen=True, slots=True)
class BlockTag:
    """A start or an end tag of a block; what it means is for the caller."""

    tag: str
    opens: bool


@overload
def from_html(text: str) -> list[Span]: ...


@overload
def from_html(text: str, blocks: Collection[str]) -> list[Span | BlockTag]: ...


def from_html(text: str, blocks: Collection[str] = ()) -> Sequence[Span | BlockTag]:
    """The spans of a text, and between them the tags of `blocks`."""
    return _Reader(text, blocks).read()


def to_html(spans: Iterable[Span]) -> str:
    """The spans as HTML, with their text escaped."""
    return "".join(map(_written, spans))


def _written(span: Span) -> str:
    text = escape(span.text, quote=False)
    for mark in reversed(span.marks):
        text = f"<{_TAGS[mark]}>{text}</{_TAGS[mark]}>"
    return text if span.href is None else f'<a href="{escape(span.href)}">{text}</a>'


class _Looks:
    """The open tags, and the formatting that they give."""

    def __init__(self) -> None:
        self._opened = 0
        #: The positions at which the open tags of each name were opened.
        self._open: dict[str, list[int]] = {}
        self._hrefs: list[str | None] = []
        self.now: tuple[tuple[Mark, ...], str | None] = ((), None)

    def open(self, tag: str, href: str | None = None) -> None:
        if tag == "a":
            self._hrefs.append(href or (self._hrefs[-1] if self._hrefs else None))
        else:
            self._opened += 1
            self._open.setdefault(tag, []).append(self._opened)
        self._look()

    def close(self, tag: str) -> None:
        opened: list[int] | list[str | None] = (
            self._hrefs if tag == "a" else self._open.get(tag, [])
        )
        if opened:
            opened.pop()
            self._look()

    def _look(self) -> None:
        first = sorted((opened[0], tag) for tag, opened in self._open.items() if opened)
        marks = tuple(dict.fromkeys(HTML_MARKS[tag] for _, tag in first))
        self.now = (marks, self._hrefs[-1] if self._hrefs else None)


class _Reader:
    def __init__(self, text: str, blocks: Collection[str]) -> None:
        self._text = text
        self._blocks = blocks
        self._places = _Places(text)
        self._read: list[Span | BlockTag] = []
        self._looks = _Looks()
        #: For a position in a tag: the end of its attributes from there.
        self._attributes_end: dict[int, int] = {}

    def read(self) -> list[Span | BlockTag]:
        text = self._text
        place = 0
        while place < len(text):
            start = text.find("<", place)
            if start < 0:
                start = len(text)
            self._add_text(unescape(text[place:start]))
            if start == len(text):
                break
            place = self._construct(start)
        return self._read

    def _add_text(self, text: str) -> None:
        if text:
            self._read.append(Span(text, *self._looks.now))

    def _construct(self, start: int) -> int:
        """Parses what starts with a `<`; returns its end."""
        after = self._text[start + 1 : start + 2]
        if after.isascii() and after.isalpha():
            end = self._tag(start)
        elif after == "/":
            end = self._end_tag(start)
        elif after in {"!", "?"}:
            end = self._left_out(start)
        else:
            self._add_text("<")
            return start + 1
        if end is None:
            # It is not closed, so it is text.
            end = self._places.next(">", start + 1)
            if end is None:
                following = self._places.next("<", start + 1)
                end = start + 1 if following is None else following
            else:
                end += 1
            self._add_text(unescape(self._text[start:end]))
        return end

    def _left_out(self, start: int) -> int | None:
        """Skips a comment, a declaration or a processing instruction."""
        text = self._text
        if text.startswith("<!--", start):
            return self._places.end_of(r"--\s*>", start + 4)
        if text.startswith("<![", start) and (section := _SECTION.match(text, start + 3)):
            if section.end() == len(text):
                return None
            if ends := _SECTION_ENDS.get(section[1].lower()):
                return self._places.end_of(ends, start + 3)
        return self._places.end_of(">", start + 2)

    def _end_tag(self, start: int) -> int | None:
        end = self._places.next(">", start + 1)
        if end is None:
            return None
        match = _END_TAG.match(self._text, start)
        name = match[1] if match else None
        if name is None and (match := _END_TAG_NAME.match(self._text, start + 2)):
            name = match[0]
        if name is not None and name.lower() in self._blocks:
            self._read.append(BlockTag(name.lower(), opens=False))
        elif name is not None:
            self._looks.close(name.lower())
        return end + 1

    def _tag(self, start: int) -> int | None:
        text = self._text
        if plain := _PLAIN_TAG.match(text, start):
            return self._begin(plain[0][1:-1].lower(), {}, plain.end(), closes_itself=False)
        end = self._end_of_tag(start)
        if end is None:
            return None
        match = _TAG_NAME.match(text, start + 1)
        assert match is not None, "a tag begins with a letter"
        place = match.end()
        attributes: dict[str, str | None] = {}
        while place < end and (attribute := _ATTRIBUTE.match(text, place)):
            name, has_value, value = attribute.group(1, 2, 3)
            if has_value and value[:1] in {"'", '"'} and value[:1] == value[-1:]:
                value = value[1:-1]
            attributes[name.lower()] = unescape(value) if has_value and value else None
            place = attribute.end()
        rest = text[place:end].strip()
        if rest not in {">", "/>"}:
            self._add_text(text[start:end])
            return end
        return self._begin(match[1].lower(), attributes, end, closes_itself=rest == "/>")

    def _begin(
        self, tag: str, attributes: dict[str, str | None], end: int, *, closes_itself: bool
    ) -> int:
        if tag == "br":
            self._add_text("\n")
        elif tag in self._blocks:
            self._read.append(BlockTag(tag, opens=True))
            if closes_itself:
                self._read.append(BlockTag(tag, opens=False))
        elif closes_itself:
            # Opened and closed again without text.
            pass
        elif tag in HTML_MARKS:
            self._looks.open(tag)
        elif tag == "a":
            self._looks.open(tag, safe_href(attributes.get("href")))
        elif tag in _RAW_END:
            raw = _RAW_END[tag].search(self._text, end)
            if raw is None:
                return len(self._text)
            self._add_text(self._text[end : raw.start()])
            return raw.end()
        return end

    def _end_of_tag(self, start: int) -> int | None:
        text = self._text
        name_end = self._places.next_or_end("end of a tag's name", start + 2)
        end = self._end_of_attributes(self._places.skip(r"[\s/]*", name_end))
        if text.startswith(">", end):
            return end + 1
        if text.startswith("/>", end):
            return end + 2
        next_one = text[end : end + 1]
        if next_one in {"", "/", "="} or (next_one.isascii() and next_one.isalpha()):
            return None
        return end

    def _end_of_attributes(self, place: int) -> int:
        passed: list[int] = []
        while place not in self._attributes_end:
            passed.append(place)
            after = self._after_attribute(place)
            if after is None:
                self._attributes_end[place] = self._places.skip(r"\s*", place)
            else:
                place = after
        for one in passed:
            self._attributes_end[one] = self._attributes_end[place]
        return self._attributes_end[place]

    def _after_attribute(self, place: int) -> int | None:
        text = self._text
        before, first = text[place - 1], text[place : place + 1]
        if not (before in "'\"/" or before.isspace()) or first in {"", "/", ">"} or first.isspace():
            return None
        name_end = self._places.next_or_end("end of an attribute's name", place + 1)
        value_end = self._after_value(name_end)
        return self._places.skip(r"(?:\s|/(?!>))*", name_end if value_end is None else value_end)

    def _after_value(self, place: int) -> int | None:
        """The end of the value whose `=` may be at a position; None if there is no value."""
        skip, text = self._places.skip, self._text
        equals = skip(r"\s*", place)
        equals_end = skip("=*", equals)
        if equals_end == equals:
            return None
        value = skip(r"\s*", equals_end)
        quote = text[value : value + 1]
        if quote in {"'", '"'}:
            end = self._places.next(quote, value + 1)
            if end is not None:
                return skip(r"\s*", end + 1)
            # An unclosed quote starts an attribute of its own, or is part of an unquoted value.
            if value > equals_end:
                return value
            if equals_end - equals < 2:
                return None
            value = equals_end - 1
        return skip(r"\s*", self._places.next_or_end("end of a bare value", value))


#: Classes of characters that the parser searches for.
_CLASSES = {
    ">": ">",
    "<": "<",
    "'": "'",
    '"': '"',
    "end of a tag's name": r"[\t\n\r\f />\x00]",
    "end of an attribute's name": r"[\s/=>]",
    "end of a bare value": r"[>\s]",
}


class _Places:
    """The positions of what the parser searches for in a text; each class is searched for once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[str, list[tuple[int, int]]] = {}
        self._skipped: dict[tuple[str, int], int] = {}

    def next(self, name: str, start: int) -> int | None:
        """The first position of a character of the class, at or after `start`."""
        if name not in self._found:
            self._found[name] = _starts_and_ends(_CLASSES[name], self._text)
        found = self._found[name]
        index = bisect_left(found, (start, 0))
        return found[index][0] if index < len(found) else None

    def next_or_end(self, name: str, start: int) -> int:
        found = self.next(name, start)
        return len(self._text) if found is None else found

    def end_of(self, pattern: str, start: int) -> int | None:
        """The end of the first match of the pattern; its matches can't overlap."""
        if pattern not in self._found:
            self._found[pattern] = _starts_and_ends(pattern, self._text)
        found = self._found[pattern]
        index = bisect_left(found, (start, 0))
        return found[index][1] if index < len(found) else None

    def skip(self, pattern: str, start: int) -> int:
        """The position after an optional match of the pattern at `start`."""
        if (pattern, start) not in self._skipped:
            match = re.compile(pattern).match(self._text, start)
            self._skipped[pattern, start] = match.end() if match else start
        return self._skipped[pattern, start]


def _starts_and_ends(pattern: str, text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(pattern, text)]
