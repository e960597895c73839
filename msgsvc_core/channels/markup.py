"""Reads the three formats of a message into spans: text with a look, and nothing that could run.

A channel writes spans in its platform's own markup, so what an integrator wrote can't break it.

No format can be broken here. Markup that has no meaning is shown as it stands, an HTML tag outside
the small set is left out with its text kept, and a tag left open ends with the message.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Literal

from msgsvc_core.channels.outgoing import Format

Mark = Literal["bold", "italic", "underline", "strike", "code", "pre"]

#: What platforms count as the length of a text.
TextUnit = Literal["characters", "utf16"]

#: How deep markup may be nested before the rest is taken as text.
MAX_DEPTH = 8

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

#: What a backslash takes its meaning from, or protects at the edge of a marked text.
_ESCAPED = r"\\([\\`*_~\[\]()\#+.!>\s-])"

#: A text between two marks: no space at its edges unless escaped, and neither what is escaped nor what
#: is code ends it. The first is three times as fast, for texts that hold neither.
_MARKED_LETTERS = r"\S(?:.*?\S)??"
_WHOLE = r"\\.|```.+?```|`[^`\n]+`|`"
_MARKED = rf"(?!\s)(?>[^\\`*_~\s]+|[^\\`]|{_WHOLE})*?(?>[^\\`*_~\s]+|[^\\`\s]|{_WHOLE})"


def _markdown(marked: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
          \\(?P<escaped>[\\`*_~\[\]()\#+.!>\s-])
        | ```(?:\w*\n)?(?P<pre>.+?)\n?```
        | `(?P<code>[^`\n]+)`
        | \[(?P<label>(?>\\.|`[^`\n]+`|[^\[\]\\\n])+)\]\((?P<href>[^()\s]+)\)
        | \*\*(?P<bold>{marked})\*\*(?!\*)
        | (?<!\w)__(?P<bold2>{marked})__(?!\w)
        | ~~(?P<strike>{marked})~~
        | \*(?P<italic>{marked})\*
        | (?<!\w)_(?P<italic2>{marked})_(?!\w)
        """,
        re.VERBOSE | re.DOTALL,
    )


_MARKDOWN = _markdown(_MARKED)
_MARKDOWN_LETTERS = _markdown(_MARKED_LETTERS)
_MARKDOWN_MARKS: dict[str, Mark] = {
    "pre": "pre",
    "code": "code",
    "bold": "bold",
    "bold2": "bold",
    "strike": "strike",
    "italic": "italic",
    "italic2": "italic",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text with one look. `href` is an http or https address."""

    text: str
    marks: tuple[Mark, ...] = ()
    href: str | None = None


def to_spans(text: str, text_format: Format) -> list[Span]:
    """The spans of a message; their texts together are what a person reads."""
    if text_format == "html":
        spans = _from_html(text)
    elif text_format == "markdown":
        spans = list(_from_markdown(text, Span(text=""), 0))
    else:
        spans = [Span(text=text)]
    return _joined(spans)


def visible_length(text: str, text_format: Format, unit: TextUnit = "characters") -> int:
    """How long a platform that counts `unit` takes a text to be, without its markup."""
    if text_format != "plain":
        text = "".join(span.text for span in to_spans(text, text_format))
    return len(text) if unit == "characters" else utf16_length(text)


def like(look: Span, text: str) -> Span:
    """Another text with the same look."""
    return replace(look, text=text)


def utf16_length(text: str) -> int:
    """UTF-16 code units: two for a character beyond the basic plane, such as most emoji."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def clipped(text: str, most: int) -> str:
    """As much of a text as fits, in the unit in which platforms count."""
    if utf16_length(text) <= most:
        return text
    kept = text.encode("utf-16-le", "surrogatepass")[: 2 * (most - 1)]
    return kept.decode("utf-16-le", "ignore").rstrip() + "…"


def safe_href(href: str | None) -> str | None:
    """The address if a page may lead to it; `None` for `javascript:` and the like."""
    cleaned = (href or "").strip()
    return cleaned if re.match(r"https?://[^\s/]", cleaned, re.IGNORECASE) else None


def _from_markdown(text: str, look: Span, depth: int) -> Iterable[Span]:
    end = 0
    pattern = _MARKDOWN if "\\" in text or "`" in text else _MARKDOWN_LETTERS
    for match in pattern.finditer(text) if depth < MAX_DEPTH else ():
        yield like(look, text[end : match.start()])
        yield from _markdown_piece(match, look, depth)
        end = match.end()
    yield like(look, text[end:])


def _markdown_piece(match: re.Match[str], look: Span, depth: int) -> Iterable[Span]:
    kind = match.lastgroup or ""
    inside = match[kind]
    if kind == "escaped":
        yield like(look, inside)
    elif kind == "href":
        href = safe_href(inside)
        # A label whose address is refused stays visible as it was written.
        shown = re.sub(_ESCAPED, r"\1", match["label"]) if href else match[0]
        yield like(replace(look, href=href or look.href), shown)
    else:
        mark = _MARKDOWN_MARKS[kind]
        inner = replace(look, marks=(*look.marks, mark))
        if mark in {"code", "pre"}:
            yield like(inner, inside)
        else:
            yield from _from_markdown(inside, inner, depth + 1)


class _HtmlReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.spans: list[Span] = []
        self._open: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.handle_data("\n")
        elif tag in HTML_MARKS:
            self._open.append((tag, None))
        elif tag == "a":
            self._open.append((tag, safe_href(dict(attrs).get("href"))))

    def handle_endtag(self, tag: str) -> None:
        for index in reversed(range(len(self._open))):
            if self._open[index][0] == tag:
                del self._open[index]
                return

    def handle_data(self, data: str) -> None:
        marks = [HTML_MARKS[tag] for tag, _ in self._open if tag in HTML_MARKS]
        hrefs = [href for _, href in self._open if href]
        self.spans.append(Span(data, tuple(dict.fromkeys(marks)), hrefs[-1] if hrefs else None))


def _from_html(text: str) -> list[Span]:
    reader = _HtmlReader()
    reader.feed(text)
    reader.close()
    return reader.spans


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if not span.text:
            continue
        last = joined[-1] if joined else None
        if last is not None and (last.marks, last.href) == (span.marks, span.href):
            joined[-1] = like(last, last.text + span.text)
        else:
            joined.append(span)
    return joined
