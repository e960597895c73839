"""Write batches: rows that are inserted together, without reads in between."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import structlog

from msgsvc_core.db.errors import UniqueViolation
from msgsvc_core.db.rows import Shape, Values, shape_of
from msgsvc_core.kernel.values import value_object

log = structlog.get_logger(__name__)


@value_object
class Claim:
    """A row that must be new: `key` are the columns of the unique index that decides it."""

    shape: Shape
    values: Values
    key: tuple[str, ...]

    @property
    def key_values(self) -> Values:
        columns = self.shape[1]
        return tuple(self.values[columns.index(column)] for column in self.key)


def call_all(callbacks: Iterable[Callable[[], None]]) -> None:
    """Calls the callbacks of a commit. An exception in one doesn't affect the commit or the others."""
    for callback in callbacks:
        try:
            callback()
        except Exception:
            log.exception("commit_callback_failed")


class WriteBatch:
    """Rows that one caller wants written; `Database.write` commits many batches in one transaction.

    A batch is written completely or not at all, independent of the others.
    """

    __slots__ = ("after_commit", "required", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[Shape, Values]] = []
        self.required: Claim | None = None
        self.after_commit: list[Callable[[], None]] = []

    def insert(self, table: str, values: Mapping[str, Any]) -> None:
        """Adds one row."""
        self.rows.append((shape_of(table, values), tuple(values.values())))

    def require_new(self, table: str, values: Mapping[str, Any], key: Sequence[str]) -> None:
        """Makes the batch depend on a new row: if a row with this `key` exists, `write` raises
        `UniqueViolation`.

        Key columns are never null, and of types that the database compares as Python does: strings and
        integers.
        """
        assert self.required is None, "a unit has one claim"
        assert all(values[column] is not None for column in key), "a key is never null"
        self.required = Claim(shape_of(table, values), tuple(values.values()), tuple(key))

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Calls `callback` after the commit. It must not raise or block."""
        self.after_commit.append(callback)

    def __bool__(self) -> bool:
        return bool(self.rows) or self.required is not None


def without_claim(units: Sequence[WriteBatch], won: set[int]) -> list[Exception | None]:
    """`UniqueViolation` for each batch whose claim is not among `won`, by `id`; None for the others."""
    return [
        None
        if unit.required is None or id(unit) in won
        else UniqueViolation(
            f"{unit.required.shape[0]} has a row of that {', '.join(unit.required.key)}"
        )
        for unit in units
    ]


def by_shape(units: Iterable[WriteBatch]) -> dict[Shape, list[Values]]:
    """The rows of all units, grouped by table and columns."""
    rows: dict[Shape, list[Values]] = {}
    for unit in units:
        for shape, values in unit.rows:
            found = rows.get(shape)
            if found is None:
                rows[shape] = [values]
            else:
                found.append(values)
    return rows


def claims_by_kind(
    units: Iterable[WriteBatch],
) -> dict[tuple[Shape, tuple[str, ...]], dict[Values, WriteBatch]]:
    """The first unit of each claimed key, by table and key columns, with the keys sorted.

    Sorted, because two processes that insert the same keys in different orders would deadlock.
    """
    found: dict[tuple[Shape, tuple[str, ...]], dict[Values, WriteBatch]] = {}
    for unit in units:
        if unit.required is not None:
            kind = (unit.required.shape, unit.required.key)
            found.setdefault(kind, {}).setdefault(unit.required.key_values, unit)
    return {kind: dict(sorted(units.items())) for kind, units in found.items()}
