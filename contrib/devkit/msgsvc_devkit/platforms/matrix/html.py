"""Reads `formatted_body` as clients show it, and refuses what the specification does not permit."""

import re
from html import unescape

from msgsvc_devkit.platforms.matrix.refusals import malformed

#: Tags that clients show, and the attributes that the fake takes of each ("m.room.message msgtypes").
TAGS = frozenset(
    re.findall(
        r"\w+",
        "del h1 h2 h3 h4 h5 h6 blockquote p a ul ol sup sub li b i u strong em s code hr br div table thead"
        " tbody tr th td caption pre span details summary",
    )
)

#: Greatest depth of tags.
MAX_DEPTH = 100

_PIECE = re.compile(
    r"""(?P<text>[^<>&]+)
      | (?P<entity>&(?:amp|lt|gt|quot|nbsp|\#x?[0-9a-fA-F]+);)
      | (?P<br><br\ ?/?>)
      | <(?P<open>[a-z0-9]+)(?:\ href="(?P<href>[^"<>]+)")?>
      | </(?P<close>[a-z0-9]+)>""",
    re.VERBOSE,
)
_HREF = re.compile(r"(?:https?|ftp|mailto|magnet):\S+")


def read_html(html: str) -> tuple[str, tuple[str, ...]]:
    """What a person reads, and the tags in their order. Raises `Refused`."""
    reader, place = _Reader(), 0
    while place < len(html):
        piece = _PIECE.match(html, place)
        if piece is None:
            raise malformed(f"formatted_body: no HTML at {place}: {html[place : place + 20]!r}")
        place = piece.end()
        reader.read(piece)
    if reader.opened:
        raise malformed(f"formatted_body: <{reader.opened[-1]}> is not closed")
    return reader.shown, tuple(reader.tags)


class _Reader:
    def __init__(self) -> None:
        self.shown = ""
        self.tags: list[str] = []
        self.opened: list[str] = []

    def read(self, piece: re.Match[str]) -> None:
        if name := piece["open"]:
            _check_tag(name, piece["href"])
            self.opened.append(name)
            self.tags.append(name)
            if len(self.opened) > MAX_DEPTH:
                raise malformed("formatted_body: tags are nested too deep")
        elif name := piece["close"]:
            if not self.opened or self.opened.pop() != name:
                raise malformed(f"formatted_body: </{name}> closes nothing")
        else:
            self.shown += self._text(piece)

    def _text(self, piece: re.Match[str]) -> str:
        if piece["br"]:
            return "\n"
        if piece["entity"] == "&nbsp;":
            # It stands for a space that would collapse.
            return " "
        if piece["entity"]:
            return unescape(piece["entity"])
        return _text(piece["text"], self.shown, pre="pre" in self.opened)


def _text(text: str, before: str, *, pre: bool) -> str:
    """As a browser shows it: white space collapses, unless it is preformatted."""
    if pre:
        return text
    collapsed = re.sub(r"[ \t\n\r\f]+", " ", text)
    return collapsed[1:] if collapsed.startswith(" ") and before.endswith("\n") else collapsed


def _check_tag(name: str, href: str | None) -> None:
    if name not in TAGS or (name == "a") != (href is not None):
        raise malformed(f"formatted_body: <{name}> is not permitted like this")
    if href is not None and not _HREF.fullmatch(unescape(href)):
        raise malformed("formatted_body: href leads nowhere")
