"""Parses a text as the platform does, and rejects ambiguous markup.

The platform ignores unknown tags. The fake rejects them, and every `<` or `&` that is not markup: such a text
was not escaped.
"""

import re
from html import unescape
from typing import Any

from msgsvc_devkit.platforms.max.refusals import malformed

#: Names of tags, and their types in the schema's MarkupElement.
MARKS = {
    "b": "strong",
    "strong": "strong",
    "i": "emphasized",
    "em": "emphasized",
    "del": "strikethrough",
    "s": "strikethrough",
    "ins": "underline",
    "u": "underline",
    "pre": "monospaced",
    "code": "monospaced",
    "mark": "highlighted",
    "h1": "heading",
    "a": "link",
}

_PIECE = re.compile(
    r"""(?P<text>[^<>&]+)
      | (?P<entity>&(?:amp|lt|gt|quot|\#x?[0-9a-fA-F]+);)
      | <(?P<open>[a-z0-9]+)(?:\ href="(?P<href>[^"<>]+)")?>
      | </(?P<close>[a-z0-9]+)>""",
    re.VERBOSE,
)


def read_text(text: str, text_format: str | None) -> tuple[str, list[dict[str, Any]]]:
    """The visible text, and its markup (schema: MarkupElement). Raises `Refused`."""
    if text_format is None:
        return text, []
    if text_format != "html":
        raise malformed(f"format: the fake reads html, not {text_format!r}")
    return _Reader().read(text)


class _Reader:
    def __init__(self) -> None:
        self._shown = ""
        self._markup: list[dict[str, Any]] = []
        self._open: list[tuple[str, int, str | None]] = []

    def read(self, text: str) -> tuple[str, list[dict[str, Any]]]:
        place = 0
        while place < len(text):
            piece = _PIECE.match(text, place)
            if piece is None:
                raise malformed(f"text: no markup at {place}: {text[place : place + 20]!r}")
            self._take(piece)
            place = piece.end()
        if self._open:
            raise malformed(f"text: <{self._open[-1][0]}> is not closed")
        return self._shown, self._markup

    def _take(self, piece: re.Match[str]) -> None:
        if name := piece["open"]:
            if name not in MARKS or (name == "a") != (piece["href"] is not None):
                raise malformed(f"text: unknown tag {piece[0]!r}")
            self._open.append((name, _length(self._shown), piece["href"]))
        elif name := piece["close"]:
            self._close(name)
        else:
            self._shown += unescape(piece[0])

    def _close(self, name: str) -> None:
        if not self._open or self._open[-1][0] != name:
            raise malformed(f"text: </{name}> closes nothing")
        _, start, href = self._open.pop()
        length = _length(self._shown) - start
        element: dict[str, Any] = {"type": MARKS[name], "from": start, "length": length}
        if href is not None:
            element["url"] = unescape(href)
            if len(element["url"]) > 2048:
                raise malformed("text: a link is at most 2048 characters long")
        self._markup.append(element)


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
