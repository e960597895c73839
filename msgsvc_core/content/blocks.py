"""Parses the format `rich`: HTML with headings, lists, tables, quotes, code blocks and dividers.

Parsing never fails, as that of `html`: unknown tags are removed, but their text is kept, and what stands
where it has no place gets the blocks around it that it needs. Line breaks in a text are kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from html import escape

from msgsvc_core.content.html_markup import BlockTag, from_html, to_html
from msgsvc_core.content.spans import Span, joined

#: Maximum nesting of lists, quotes and tables; deeper ones are text.
MAX_NESTING = 32

HEADINGS = {f"h{level}": level for level in range(1, 7)}

_INLINE = frozenset({"p", "pre", *HEADINGS})
_CONTAINERS = frozenset({"ul", "ol", "li", "blockquote", "table", "tr", "td", "th"})
TAGS = _INLINE | _CONTAINERS | {"hr"}

_LISTS = frozenset({"ul", "ol"})
_CELLS = frozenset({"td", "th"})

#: The blocks that a tag stands in, and those that it can't be looked for beyond.
_PARENTS: dict[str, tuple[Set[str], Set[str]]] = {
    "li": (_LISTS, {"table"}),
    "tr": ({"table"}, _LISTS),
    "td": ({"tr", "table"}, _LISTS),
    "th": ({"tr", "table"}, _LISTS),
}

Spans = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    spans: Spans


@dataclass(frozen=True, slots=True)
class Heading:
    """`level` is 1 for the largest, 6 for the smallest."""

    level: int
    spans: Spans


@dataclass(frozen=True, slots=True)
class CodeBlock:
    text: str


@dataclass(frozen=True, slots=True)
class Divider:
    pass


@dataclass(frozen=True, slots=True)
class Quote:
    blocks: "Blocks"


@dataclass(frozen=True, slots=True)
class List:
    items: "tuple[Blocks, ...]"
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    spans: Spans
    header: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    rows: tuple[tuple[Cell, ...], ...]


Block = Paragraph | Heading | CodeBlock | Divider | Quote | List | Table
Blocks = tuple[Block, ...]


def from_rich(text: str) -> Blocks:
    builder = _Builder()
    for token in from_html(text, TAGS):
        builder.take(token)
    return builder.finish()


def to_rich(blocks: Iterable[Block], styles: Mapping[str, str] | None = None) -> str:
    """The blocks as HTML, with their text escaped, and with the style of each tag."""
    return "".join(_Writer(styles or {}).block(block) for block in blocks)


def as_text(blocks: Iterable[Block]) -> list[Span]:
    """The blocks as a text with formatting, for platforms without them: headings are bold, the cells of a row
    stand beside each other, and lists and quotes have their signs."""
    return list(_between("\n\n", [_as_text(block) for block in blocks]))


def spans_of(blocks: Iterable[Block]) -> Iterator[Spans]:
    """The texts of the blocks, each with its formatting."""
    for block in blocks:
        match block:
            case Paragraph(spans) | Heading(_, spans):
                yield spans
            case CodeBlock(text):
                yield (Span(text, ("pre",)),)
            case Quote(inner):
                yield from spans_of(inner)
            case List(items):
                for item in items:
                    yield from spans_of(item)
            case Table(rows):
                yield from (cell.spans for row in rows for cell in row)


def with_spans(blocks: Iterable[Block], changed: Iterator[Span]) -> Blocks:
    """The blocks with other spans in place of those of `spans_of`, one for one."""
    return tuple(_with_spans(block, changed) for block in blocks)


@dataclass(frozen=True, slots=True)
class Size:
    """What platforms limit: blocks with those inside of them, list items and table rows; levels of nested
    blocks and formatting; the most columns of a table; characters."""

    blocks: int
    levels: int
    columns: int
    characters: int


def size_of(blocks: Blocks) -> Size:
    texts = list(spans_of(blocks))
    return Size(
        blocks=sum(map(_count, blocks)),
        levels=max(map(_levels, blocks), default=0),
        columns=max(map(_columns, blocks), default=0),
        characters=sum(len(span.text) for spans in texts for span in spans),
    )


@dataclass(slots=True)
class _Open:
    """An open block, and what is in it so far: blocks, items, rows, cells or spans, by its tag."""

    tag: str
    blocks: list[Block] = field(default_factory=list)
    items: list[Blocks] = field(default_factory=list)
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)


class _Builder:
    def __init__(self) -> None:
        self._open = [_Open("")]
        #: The tag of the text that is being read; `p` without one.
        self._inline = "p"
        self._spans: list[Span] = []

    def take(self, token: Span | BlockTag) -> None:
        if isinstance(token, Span):
            self._take_text(token)
        elif token.tag in _INLINE:
            self._take_inline(token)
        elif token.tag == "hr":
            if token.opens and self._holds_blocks():
                self._open[-1].blocks.append(Divider())
        elif token.opens:
            self._begin(token.tag)
        else:
            self._end(token.tag)

    def finish(self) -> Blocks:
        self._end_text()
        while len(self._open) > 1:
            self._close()
        return tuple(self._open[0].blocks)

    def _take_text(self, span: Span) -> None:
        if not self._spans and self._inline != "pre" and not span.text.strip():
            return
        match self._open[-1].tag:
            case "ul" | "ol":
                self._push("li")
            case "table":
                self._push("tr")
                self._push("td")
            case "tr":
                self._push("td")
        self._spans.append(span)

    def _take_inline(self, token: BlockTag) -> None:
        if self._open[-1].tag in _CELLS:
            # A cell holds text alone, here as on Telegram.
            self._separate()
            return
        self._end_text()
        self._inline = token.tag if token.opens else "p"

    def _separate(self) -> None:
        """A block within a cell, which holds text alone, is a word of its own."""
        if self._spans and not self._spans[-1].text.endswith(" "):
            self._spans.append(Span(" "))

    def _holds_blocks(self) -> bool:
        """Ends the text that is being read; whether a block may follow it."""
        if self._open[-1].tag in _CELLS:
            return False
        self._end_text()
        while self._open[-1].tag in {"ul", "ol", "table", "tr"}:
            self._close()
        return True

    def _begin(self, tag: str) -> None:
        if tag == "li" and self._open[-1].tag in _CELLS:
            self._separate()
        elif tag in _PARENTS:
            parents, within = _PARENTS[tag]
            self._back_to(parents, within=within)
            if tag in _CELLS and self._open[-1].tag == "table":
                self._push("tr")
            if self._open[-1].tag in parents:
                self._push(tag)
        elif self._open[-1].tag not in _CELLS:
            self._begin_container(tag)
        else:
            self._separate()

    def _begin_container(self, tag: str) -> None:
        self._end_text()
        if self._open[-1].tag in _LISTS:
            # A list in a list, as many write it: it belongs to the item before.
            self._push("li")
        while self._open[-1].tag in {"table", "tr"}:
            self._close()
        if len(self._open) <= MAX_NESTING:
            self._push(tag)

    def _push(self, tag: str) -> None:
        self._inline = "p"
        self._open.append(_Open(tag))

    def _back_to(self, tags: Set[str], *, within: Set[str]) -> None:
        """Closes what is open within the innermost of `tags`, if there is one not beyond `within`."""
        for one in reversed(self._open):
            if one.tag in tags:
                self._end_text()
                while self._open[-1] is not one:
                    self._close()
                return
            if one.tag in within:
                return

    def _end(self, tag: str) -> None:
        self._back_to({tag}, within={"table"} if tag in {"li", "ul", "ol", "blockquote"} else set())
        if self._open[-1].tag == tag:
            self._end_text()
            self._close()

    def _end_text(self) -> None:
        spans, self._spans = self._spans, []
        tag, self._inline = self._inline, "p"
        top = self._open[-1]
        if top.tag in _CELLS:
            if trimmed := _trimmed(spans):
                top.cells.append(Cell(trimmed, top.tag == "th"))
        elif tag == "pre":
            if text := "".join(span.text for span in spans).strip("\n"):
                top.blocks.append(CodeBlock(text))
        elif trimmed := _trimmed(spans):
            level = HEADINGS.get(tag)
            top.blocks.append(Paragraph(trimmed) if level is None else Heading(level, trimmed))

    def _close(self) -> None:
        closed = self._open.pop()
        top = self._open[-1]
        if closed.tag in _CELLS:
            top.cells += closed.cells or [Cell((), closed.tag == "th")]
        elif closed.tag == "li" and closed.blocks:
            top.items.append(tuple(closed.blocks))
        elif closed.tag == "tr" and closed.cells:
            top.rows.append(tuple(closed.cells))
        elif closed.tag == "table" and closed.rows:
            top.blocks.append(Table(tuple(closed.rows)))
        elif closed.tag in _LISTS and closed.items:
            top.blocks.append(List(tuple(closed.items), closed.tag == "ol"))
        elif closed.tag == "blockquote" and closed.blocks:
            top.blocks.append(Quote(tuple(closed.blocks)))


def _trimmed(spans: list[Span]) -> Spans:
    """The spans without whitespace at both ends."""
    kept = joined(spans)
    while kept and (text := kept[0].text.lstrip()) != kept[0].text:
        kept[:1] = [replace(kept[0], text=text)] if text else []
    while kept and (text := kept[-1].text.rstrip()) != kept[-1].text:
        kept[-1:] = [replace(kept[-1], text=text)] if text else []
    return tuple(kept)


class _Writer:
    def __init__(self, styles: Mapping[str, str]) -> None:
        self._styles = styles

    def block(self, block: Block) -> str:
        match block:
            case Paragraph(spans):
                shown = self._tagged("p", _inline(spans))
            case Heading(level, spans):
                shown = self._tagged(f"h{level}", _inline(spans))
            case CodeBlock(text):
                shown = self._tagged("pre", escape(text, quote=False))
            case Divider():
                shown = self._tagged("hr", None)
            case Quote(inner):
                shown = self._tagged("blockquote", self._all(inner))
            case List(items, ordered):
                inside = "".join(self._tagged("li", self._item(item)) for item in items)
                shown = self._tagged("ol" if ordered else "ul", inside)
            case Table(rows):
                inside = "".join(self._tagged("tr", "".join(map(self._cell, row))) for row in rows)
                shown = self._tagged("table", inside)
        return shown

    def _all(self, blocks: Blocks) -> str:
        return "".join(map(self.block, blocks))

    def _item(self, blocks: Blocks) -> str:
        match blocks:
            case (Paragraph(spans), *rest) if not any(isinstance(b, Paragraph) for b in rest):
                return _inline(spans) + self._all(tuple(rest))
        return self._all(blocks)

    def _cell(self, cell: Cell) -> str:
        return self._tagged("th" if cell.header else "td", _inline(cell.spans))

    def _tagged(self, tag: str, inside: str | None) -> str:
        style = f' style="{self._styles[tag]}"' if tag in self._styles else ""
        return f"<{tag}{style}/>" if inside is None else f"<{tag}{style}>{inside}</{tag}>"


def _inline(spans: Spans) -> str:
    return to_html(spans).replace("\n", "<br>")


def _as_text(block: Block) -> list[Span]:
    match block:
        case Paragraph(spans):
            shown = list(spans)
        case Heading(_, spans):
            shown = [_bold(span) for span in spans]
        case CodeBlock(text):
            shown = [Span(text, ("pre",))]
        case Divider():
            shown = [Span("———")]
        case Quote(inner):
            shown = _hanging(as_text(inner), "> ", "> ")
        case List(items, ordered):
            texts = [_item_as_text(item, n if ordered else None) for n, item in enumerate(items, 1)]
            shown = list(_between("\n", texts))
        case Table(rows):
            shown = list(_between("\n", [list(_between(" | ", map(_cell, row))) for row in rows]))
    return shown


def _item_as_text(item: Blocks, number: int | None) -> list[Span]:
    sign = "• " if number is None else f"{number}. "
    return _hanging(_between("\n", [_as_text(block) for block in item]), sign, " " * len(sign))


def _cell(cell: Cell) -> list[Span]:
    return [_bold(span) if cell.header else span for span in cell.spans]


def _bold(span: Span) -> Span:
    return replace(span, marks=tuple(dict.fromkeys(("bold", *span.marks))))


def _hanging(spans: Iterable[Span], first: str, others: str) -> list[Span]:
    """The text with `first` before its first line and `others` before the rest."""
    return [Span(first), *(replace(s, text=s.text.replace("\n", f"\n{others}")) for s in spans)]


def _between(sign: str, parts: Iterable[Iterable[Span]]) -> Iterator[Span]:
    for number, part in enumerate(parts):
        if number:
            yield Span(sign)
        yield from part


def _with_spans(block: Block, changed: Iterator[Span]) -> Block:
    match block:
        case Paragraph(spans):
            new: Block = Paragraph(_next(spans, changed))
        case Heading(level, spans):
            new = Heading(level, _next(spans, changed))
        case CodeBlock():
            new = CodeBlock(next(changed).text)
        case Quote(inner):
            new = Quote(with_spans(inner, changed))
        case List(items, ordered):
            new = List(tuple(with_spans(item, changed) for item in items), ordered)
        case Table(rows):
            new = Table(
                tuple(
                    tuple(Cell(_next(cell.spans, changed), cell.header) for cell in row)
                    for row in rows
                )
            )
        case Divider():
            new = block
    return new


def _next(spans: Spans, changed: Iterator[Span]) -> Spans:
    return tuple(next(changed) for _ in spans)


def _count(block: Block) -> int:
    match block:
        case Quote(inner):
            return 1 + sum(map(_count, inner))
        case List(items):
            return 1 + sum(1 + sum(map(_count, item)) for item in items)
        case Table(rows):
            return 1 + len(rows)
    return 1


def _levels(block: Block) -> int:
    match block:
        case Paragraph(spans) | Heading(_, spans):
            return 1 + _levels_of(spans)
        case Quote(inner):
            return 1 + max(map(_levels, inner))
        case List(items):
            return 2 + max(_levels(inner) for item in items for inner in item)
        case Table(rows):
            return 1 + max(_levels_of(cell.spans) for row in rows for cell in row)
    return 1


def _levels_of(spans: Spans) -> int:
    return max((len(span.marks) + (span.href is not None) for span in spans), default=0)


def _columns(block: Block) -> int:
    match block:
        case Table(rows):
            return max(map(len, rows))
        case Quote(inner):
            return max(map(_columns, inner))
        case List(items):
            return max(_columns(inner) for item in items for inner in item)
    return 0
