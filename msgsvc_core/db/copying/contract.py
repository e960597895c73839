"""What a database must offer to be copied from or to; `sqlite_end` and `postgres_end` implement it."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from msgsvc_core.db.revisions import MigrationSource

#: Rows of one batch, which is one transaction of the target.
BATCH_ROWS = 2000

#: The same for tables with binary columns: chunks of files have up to 64 KiB.
BATCH_BINARY_ROWS = 64

#: How the application reads a column: the databases store a boolean, for example, differently.
Kind = Literal["boolean", "integer", "text", "bytes"]

#: The values of a row, in the order of `Table.columns`.
Values = tuple[Any, ...]

#: Called with what is being done, e.g. "copying core_jobs", the steps done, and of how many.
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table, without its generated columns: each database computes those."""

    name: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    key: tuple[str, ...]

    @property
    def batch_rows(self) -> int:
        return BATCH_BINARY_ROWS if "bytes" in self.kinds else BATCH_ROWS

    def key_of(self, row: Values) -> Values:
        return tuple(row[self.columns.index(column)] for column in self.key)

    def select(self, *, after_key: bool) -> str:
        """The query of all rows in the order of the key; `after_key` of those behind `$1, $2, ...`."""
        key = ", ".join(self.key)
        places = ", ".join(f"${number}" for number in range(1, len(self.key) + 1))
        where = f" WHERE ({key}) > ({places})" if after_key else ""
        return f"SELECT {', '.join(self.columns)} FROM {self.name}{where} ORDER BY {key}"


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose tables are copied, and which of their columns are not, as `table.column`, with the reason.

    `has_sessions` says that a connection pooler in front of PostgreSQL keeps a connection for each session.
    """

    migrations: Sequence[MigrationSource]
    left_out: Mapping[str, str]
    has_sessions: bool = False

    @property
    def version_tables(self) -> set[str]:
        """Each database's migrations fill these."""
        return {each.version_table for each in self.migrations}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Number of rows of a table, and a checksum of their values in any order, as hex digits."""

    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A finished copy: what was compared, by table; both databases had the same."""

    tables: dict[str, Fingerprint]

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.tables.values())


class End(Protocol):
    """A connection to one of the two databases of a copy."""

    #: Which database it is, without a password.
    name: str

    async def close(self) -> None: ...

    async def check_alone(self) -> None:
        """Raises `CopyRefused` if a process of the service uses the database."""
        ...

    async def table_names(self) -> set[str]: ...

    async def execute(self, sql: str, *values: Any) -> list[Values]:
        """The rows of a statement with parameters `$1`, `$2`, ..."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[None]: ...

    def rows(self, table: Table, after: Values | None = None) -> AsyncGenerator[list[Values]]:
        """Batches of rows behind the key `after`, in the order of the key, with values as the application
        reads them."""
        ...

    async def insert(self, table: Table, rows: Sequence[Values]) -> None: ...

    async def finish(self, tables: Sequence[Table]) -> None:
        """Called once all rows are there: sequences and statistics."""
        ...
