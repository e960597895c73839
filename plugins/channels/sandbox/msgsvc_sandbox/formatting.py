"""Reads the three formats of a message into spans: text with a look, and nothing that could run.

No format can be broken here. Markup that has no meaning is shown as it stands, an HTML tag outside
the small set is left out with its text kept, and a tag left open ends with the message.
"""

import re
from collections.abc import Iterable
from html.parser import HTMLParser

from msgsvc_core.channels.contract import Format
from msgsvc_sandbox.models import Mark, Span

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

_MARKDOWN = re.compile(
    r"""
      \\(?P<escaped>[\\`*_~\[\]()\#+.!>-])
    | ```(?:\w*\n)?(?P<pre>.+?)\n?```
    | `(?P<code>[^`\n]+)`
    | \[(?P<label>[^\]\n]+)\]\((?P<href>[^()\s]+)\)
    | \*\*(?P<bold>\S(?:.*?\S)?)\*\*(?!\*)
    | (?<!\w)__(?P<bold2>\S(?:.*?\S)?)__(?!\w)
    | ~~(?P<strike>\S(?:.*?\S)?)~~
    | \*(?P<italic>\S(?:.*?\S)?)\*
    | (?<!\w)_(?P<italic2>\S(?:.*?\S)?)_(?!\w)
    """,
    re.VERBOSE | re.DOTALL,
)
_ADDRESS = re.compile(r"https?://[^\s<>\"]+[^\s<>\".,:;!?'\)\]]")


def to_spans(text: str, text_format: Format) -> list[Span]:
    """The spans of a message; their texts together are what a person reads."""
    if text_format == "html":
        spans = _from_html(text)
    elif text_format == "markdown":
        spans = list(_from_markdown(text, Span(text=""), 0))
    else:
        spans = [Span(text=text)]
    return _joined(_with_addresses(spans))


def safe_href(href: str | None) -> str | None:
    """The address if a page may lead to it; `None` for `javascript:` and the like."""
    cleaned = (href or "").strip()
    return cleaned if re.match(r"https?://[^\s/]", cleaned, re.IGNORECASE) else None


def _from_markdown(text: str, look: Span, depth: int) -> Iterable[Span]:
    end = 0
    for match in _MARKDOWN.finditer(text) if depth < MAX_DEPTH else ():
        yield _like(look, text[end : match.start()])
        yield from _markdown_piece(match, look, depth)
        end = match.end()
    yield _like(look, text[end:])


def _markdown_piece(match: re.Match[str], look: Span, depth: int) -> Iterable[Span]:
    kind = match.lastgroup or ""
    inside = match[kind]
    if kind == "escaped":
        yield _like(look, inside)
    elif kind == "href":
        href = safe_href(inside)
        # A label whose address is refused stays visible as it was written.
        shown = match["label"] if href else match[0]
        yield _like(look.model_copy(update={"href": href or look.href}), shown)
    else:
        name = kind.rstrip("2")
        inner = look.model_copy(update={"marks": [*look.marks, name]})
        if name in {"code", "pre"}:
            yield _like(inner, inside)
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
        self.spans.append(
            Span(text=data, marks=list(dict.fromkeys(marks)), href=hrefs[-1] if hrefs else None)
        )


def _from_html(text: str) -> list[Span]:
    reader = _HtmlReader()
    reader.feed(text)
    reader.close()
    return reader.spans


def _with_addresses(spans: Iterable[Span]) -> Iterable[Span]:
    """Bare addresses become links, as in every messenger; not inside code."""
    for span in spans:
        if span.href or {"code", "pre"} & set(span.marks):
            yield span
            continue
        end = 0
        for match in _ADDRESS.finditer(span.text):
            yield _like(span, span.text[end : match.start()])
            yield span.model_copy(update={"text": match[0], "href": match[0]})
            end = match.end()
        yield _like(span, span.text[end:])


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if not span.text:
            continue
        last = joined[-1] if joined else None
        if last is not None and (last.marks, last.href) == (span.marks, span.href):
            joined[-1] = _like(last, last.text + span.text)
        else:
            joined.append(span)
    return joined


def _like(look: Span, text: str) -> Span:
    return look.model_copy(update={"text": text})
