"""Reads a file of people: its columns, and its rows in slices."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.imports.models import COLUMNS, ImportRow

#: Rows that one transaction takes in: some tens of milliseconds, for which SQLite's other writers wait.
SLICE = 50

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


#: Columns of a file; exports of other systems have some dozens.
MOST_COLUMNS = 500


class PeopleFile:
    """A file whose header was read; its rows are read as they are asked for, so that a large file is never in
    memory as rows. `columns` are those of the file by our field, `ignored` the others.

    UTF-8, with commas or, if the header has more of them, semicolons or tabs. Reading raises
    `ValidationFailed` for a file that can't be read, without a column `address`, without rows, and with more
    than `most`. Empty lines are passed over.
    """

    def __init__(self, content: bytes, mapping: Mapping[str, str], *, most: int) -> None:
        self._most = most
        text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
        with self._refusing():
            delimiter = max(",;\t", key=text.readline().count)
            text.seek(0)
            self._reader = csv.reader(text, delimiter=delimiter, strict=True)
            header = next(self._reader, [])
        if len(header) > MOST_COLUMNS:
            raise ValidationFailed(
                "must have at most {limit} columns", field="file", limit=MOST_COLUMNS
            )
        self._fields = _fields(header, mapping)
        named = list(zip(self._fields, header, strict=True))
        self.columns = {field: column.strip() for field, column in named if field is not None}
        self.ignored = tuple(column.strip() for field, column in named if field is None)

    def slices(self) -> Iterator[list[ImportRow]]:
        """The rows, once, so many at a time as one transaction takes in."""
        rows = self._rows()
        while found := list(islice(rows, SLICE)):
            yield found

    def _rows(self) -> Iterator[ImportRow]:
        count = 0
        with self._refusing():
            for cells in self._reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if count == self._most:
                    raise ValidationFailed(
                        "must have at most {limit} rows", field="file", limit=self._most
                    )
                count += 1
                yield _row(self._reader.line_num, cells, self._fields)
        if not count:
            raise ValidationFailed("must have a row beside its header", field="file")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError:
            raise ValidationFailed("must be UTF-8", field="file") from None
        except csv.Error as error:
            raise ValidationFailed(
                "can't be read at line {line}: {error}",
                field="file",
                line=self._reader.line_num,
                error=str(error),
            ) from None


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
    return ImportRow(line=line, cells=found)


def _name(column: str) -> str:
    return column.strip().lower()
