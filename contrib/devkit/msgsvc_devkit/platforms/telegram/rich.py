"""Reads the HTML of rich messages, and validates it by the Bot API's "Rich message formatting options".

Tags and attributes that the plugin doesn't use are omitted, so that their use by mistake is noticed.
"""

from collections.abc import Mapping
from html import unescape
from html.parser import HTMLParser
from typing import Any

from msgsvc_devkit.platforms.telegram.calls import bad_request, complaint

#: Bot API, "Rich message limits".
MAX_CHARACTERS, MAX_BLOCKS, MAX_LEVELS, MAX_COLUMNS = 32_768, 500, 16, 20

_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LOOKS = frozenset({"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "code", "a"})
#: Blocks that hold text alone.
_TEXTS = frozenset({"p", "pre", *_HEADINGS})
_LISTS = frozenset({"ul", "ol"})
_CELLS = frozenset({"td", "th"})
_BLOCKS = _TEXTS | _LISTS | {"li", "blockquote", "table", "tr", "hr"}
_VOID = frozenset({"br", "hr"})
_KNOWN = _LOOKS | _BLOCKS | _CELLS | _VOID

#: Named character references that the Bot API supports.
_NAMED = frozenset(
    {"lt", "gt", "amp", "quot", "apos", "nbsp", "hellip", "mdash", "ndash"}
    | {"lsquo", "rsquo", "ldquo", "rdquo"}
)


def shown_text(rich_message: Mapping[str, Any]) -> str:
    """The text of an InputRichMessage, a line for each block. Raises `Refusal`."""
    if set(rich_message) != {"html"} or not isinstance(rich_message["html"], str):
        raise complaint("rich_message must have html, and nothing else")
    reader = _Reader()
    reader.feed(rich_message["html"])
    reader.close()
    return reader.result()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self._open: list[str] = []
        self._text = ""
        self._blocks = 0
        self._cells = 0

    def result(self) -> str:
        if self._open:
            raise complaint(f"<{self._open[-1]}> is not closed")
        if not self._text.strip():
            # In TDLib's words.
            raise bad_request("Rich message must be non-empty")
        if len(self._text) > MAX_CHARACTERS or self._blocks > MAX_BLOCKS:
            raise complaint(
                f"a rich message has at most {MAX_CHARACTERS} characters and {MAX_BLOCKS} blocks"
            )
        return "\n".join(filter(None, (line.rstrip() for line in self._text.splitlines())))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _KNOWN:
            raise complaint(f"rich messages have no tag <{tag}>")
        allowed = {"href"} if tag == "a" else set()
        if {name for name, _ in attrs} != allowed:
            raise complaint(f"<{tag}> has attributes {attrs}")
        self._check_place(tag)
        if tag in _BLOCKS:
            self._blocks += 1
            self._text += "\n"
        if tag == "tr":
            self._cells = 0
        if tag in _CELLS:
            self._cells += 1
            self._text += " "
            if self._cells > MAX_COLUMNS:
                raise complaint(f"a table has at most {MAX_COLUMNS} columns")
        if tag == "br":
            self._text += "\n"
        if tag not in _VOID:
            self._open.append(tag)
        if len([each for each in self._open if each not in {"tr", *_CELLS}]) > MAX_LEVELS:
            raise complaint(f"a rich message has at most {MAX_LEVELS} levels")

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        if not self._open or self._open.pop() != tag:
            raise complaint(f"</{tag}> closes nothing")
        if tag in _BLOCKS:
            self._text += "\n"

    def handle_data(self, data: str) -> None:
        within = self._open[-1] if self._open else ""
        if within in _LISTS | {"table", "tr"} and data.strip():
            raise complaint(f"text in <{within}>: {data!r}")
        self._text += data

    def handle_entityref(self, name: str) -> None:
        if name not in _NAMED:
            raise complaint(f"rich messages have no &{name};")
        self._text += unescape(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._text += unescape(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        raise complaint(f"a comment: {data!r}")

    def _check_place(self, tag: str) -> None:
        within = self._open[-1] if self._open else ""
        parents = {"li": _LISTS, "tr": {"table"}, "td": {"tr"}, "th": {"tr"}}
        if tag in parents:
            fits = within in parents[tag]
        elif tag in _BLOCKS:
            # Cells and texts can contain only inline formatting.
            fits = within in {"", "li", "blockquote"}
        else:
            fits = within not in _LISTS | {"table", "tr"}
        if not fits:
            raise complaint(f"<{tag}> in <{within}>")
