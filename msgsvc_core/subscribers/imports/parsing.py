"""Reads a file of people: its columns, and its rows in slices."""

import csv
import io
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TextIO

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.imports.models import COLUMNS, ImportRow

#: Rows that one transaction takes in: some tens of milliseconds, for which SQLite's other writers wait.
SLICE = 50

#: What a row has in place of its cells, if one is longer than what is kept.
TOO_LONG = "\n"

#: An apostrophe that an export of ours, or a spreadsheet, has put before a formula.
_ESCAPED = re.compile(r"'(?=[=+\-@\t\r\n])")


def read_mapping(text: str | None) -> dict[str, str]:
    """Our fields by the column's name. Raises `ValidationFailed`."""
    if text is None:
        return {}
    try:
        mapping = from_json(text)
    except ValueError:
        mapping = None
    if not isinstance(mapping, dict) or not all(isinstance(one, str) for one in mapping.values()):
        raise ValidationFailed(
            "must be a JSON object such as {example}",
            field="mapping",
            example='{"email": "address"}',
        )
    unknown = sorted(set(mapping.values()) - set(COLUMNS))
    if unknown:
        raise ValidationFailed(
            "must be one of {choices}", field="mapping", choices=", ".join(COLUMNS)
        )
    return {_name(column): field for column, field in mapping.items()}


#: Instead of the number of cells, for a row whose cells could not be told apart.
UNREADABLE = "?"

#: Instead of the number of cells, for a row with a cell of ours that is not UTF-8.
NOT_UTF_8 = "encoding"

#: Bytes that are not UTF-8, as `surrogateescape` decodes them.
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")

#: Columns of a file; exports of other systems have some dozens.
MOST_COLUMNS = 500

#: Characters of a line. The reader holds the interpreter's lock while it splits one.
MOST_LINE = 256 * 1024

#: Characters of a cell that is kept: more than what fits into any field.
MOST_CELL = 64 * 1024


#: Lines that a row may have, in quoted cells: an open quote would take in the rest of the file, and each of
#: those lines would be read as often. And how many rows may be unreadable, or not UTF-8, before the whole
#: file is refused.
MOST_LINES, MOST_BROKEN = 100, 1_000

#: The first line by which Excel is told the separator.
_SEPARATOR = re.compile(r"\ufeff?\"?sep=([,;\t|])\"?[,;]*\r?\n?", re.IGNORECASE)


class _Lines(Iterator[str]):
    """The lines of one row: those after a row that could not be read are read again as rows of their own."""

    def __init__(self, text: Iterator[str]) -> None:
        self._text = text
        self._again: deque[str] = deque()
        self._row: list[str] = []
        #: Lines of the file that rows have taken so far.
        self.count = 0

    def __next__(self) -> str:
        if len(self._row) == MOST_LINES:
            raise StopIteration
        line = self._again.popleft() if self._again else next(self._text)
        self._row.append(line)
        self.count += 1
        return line

    def begin_row(self) -> None:
        self._row = []

    def keep_first(self) -> None:
        """Gives back all lines of this row but the first."""
        self.count -= len(self._row[1:])
        self._again.extendleft(reversed(self._row[1:]))


class PeopleFile:
    """A file after its header. Rows are read on demand, so a large file is never in memory as rows.
    `columns` are the file's columns by our field, `ignored` the others.

    UTF-8, with commas or, if the header has more of them, semicolons or tabs; a first line such as `sep=;`
    names another. A row that can't be read, or is not UTF-8, has only the cell "". Reading raises
    `ValidationFailed` for a file that can't be read, without a column `address`, without rows, and with more
    than `most`. Empty lines are passed over.
    """

    def __init__(self, content: bytes, mapping: Mapping[str, str], *, most: int) -> None:
        self._most = most
        text = io.TextIOWrapper(
            io.BytesIO(content), encoding="utf-8-sig", errors="surrogateescape", newline=""
        )
        with self._refusing():
            first = next(_lines(text), "")
            named = _SEPARATOR.fullmatch(first)
            delimiter = named[1] if named else max(",;\t", key=first.count)
            if not named:
                text.seek(0)
            self._lines = _Lines(_lines(text))
            self._lines.count = 1 if named else 0
            self._reader = csv.reader(self._lines, delimiter=delimiter, strict=True)
            header = next(self._reader, [])
        if any(map(_NOT_UTF_8.search, header)):
            # Most likely no line of the file is.
            raise self._not_utf_8()
        if len(header) > MOST_COLUMNS:
            raise ValidationFailed(
                "must have at most {limit} columns", field="file", limit=MOST_COLUMNS
            )
        self._fields = _fields(header, mapping)
        columns = list(zip(self._fields, header, strict=True))
        self.columns = {field: column.strip() for field, column in columns if field is not None}
        self.ignored = tuple(column.strip() for field, column in columns if field is None)

    def slices(self) -> Iterator[list[ImportRow]]:
        """The rows, once, so many at a time as one transaction takes in."""
        rows = self._rows()
        while found := list(islice(rows, SLICE)):
            yield found

    def _rows(self) -> Iterator[ImportRow]:
        count = wrong = 0
        with self._refusing():
            for cells in self._cells():
                if cells is not None and not any(map(str.strip, cells)):
                    continue
                if count == self._most:
                    raise ValidationFailed(
                        "must have at most {limit} rows", field="file", limit=self._most
                    )
                count += 1
                line = self._lines.count
                row = (
                    ImportRow(line=line, cells={"": UNREADABLE})
                    if cells is None
                    else _row(line, cells, self._fields)
                )
                wrong += row.cells.get("") == NOT_UTF_8
                if wrong > MOST_BROKEN:
                    raise self._not_utf_8()
                yield row
        if not count:
            raise ValidationFailed("must have a row beside its header", field="file")

    def _cells(self) -> Iterator[list[str] | None]:
        """The cells of each row; None for one that can't be read, of which the first line is passed over."""
        broken = 0
        while True:
            self._lines.begin_row()
            try:
                cells = next(self._reader)
            except StopIteration:
                return
            except csv.Error:
                broken += 1
                if broken > MOST_BROKEN:
                    raise
                self._lines.keep_first()
                yield None
            else:
                yield cells

    def _not_utf_8(self) -> ValidationFailed:
        return ValidationFailed(
            "line {line} is not UTF-8: save the file in this encoding",
            field="file",
            line=self._lines.count,
        )

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except csv.Error as error:
            raise ValidationFailed(
                "can't be read at line {line}: {error}",
                field="file",
                line=self._lines.count,
                error=str(error),
            ) from None


def _lines(text: TextIO) -> Iterator[str]:
    """The lines. Raises `ValidationFailed` for a longer one than any row of people."""
    while line := text.readline(MOST_LINE + 1):
        if len(line) > MOST_LINE:
            raise ValidationFailed(
                "a line is longer than {limit} characters", field="file", limit=MOST_LINE
            )
        yield line


def _fields(header: Sequence[str], mapping: Mapping[str, str]) -> list[str | None]:
    """Our field of each column; None for others."""
    names = [_name(column) for column in header]
    missing = [column for column in mapping if column not in names]
    if missing:
        raise ValidationFailed(
            "the file has no column {column!r}", field="mapping", column=missing[0]
        )
    mapped = set(mapping.values())
    fields = [
        mapping.get(name) or (name if name in COLUMNS and name not in mapped else None)
        for name in names
    ]
    found = [field for field in fields if field is not None]
    if "address" not in found:
        raise ValidationFailed("must have a column {column!r}", field="file", column="address")
    twice = sorted(field for field, count in Counter(found).items() if count > 1)
    if twice:
        raise ValidationFailed(
            "has the column {column!r} more than once", field="file", column=twice[0]
        )
    return fields


def _row(line: int, cells: Sequence[str], fields: Sequence[str | None]) -> ImportRow:
    found = {
        field: _ESCAPED.sub("", cell.strip(), count=1) if cell.strip()[:1] == "'" else cell.strip()
        for field, cell in zip(fields, cells, strict=False)
        if field is not None and cell.strip()
    }
    if len(cells) > len(fields):
        # Most likely a separator in a cell without quotes: every further cell would be another field.
        found = {"": str(len(cells))}
    if any(len(cell) > MOST_CELL for cell in found.values()):
        found = {TOO_LONG: ""}
    elif any(map(_NOT_UTF_8.search, found.values())):
        found = {"": NOT_UTF_8}
    return ImportRow(line=line, cells=found)


def _name(column: str) -> str:
    return column.strip().lower()
