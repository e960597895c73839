"""Maps the drivers' exceptions to a few named errors."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class DatabaseUnavailable(Exception):
    """The database can't be reached, or can't write, or gave this transaction up (`Deadlock`). Nothing was
    committed by it, and it may be tried again."""


class FileLocked(DatabaseUnavailable):
    """Another process has SQLite's file at the moment, to write or to recover it."""


class Deadlock(DatabaseUnavailable):
    """PostgreSQL aborted this transaction to resolve a deadlock. Retrying usually succeeds; see
    `retry_on_deadlock`."""


class RolledBack(Exception):
    """PostgreSQL answered COMMIT with ROLLBACK: a statement had failed in the transaction, outside of a
    `savepoint`, and the block went on. Nothing was committed. A mistake of ours; trying again won't help."""


class LockTimeout(Exception):
    """Another transaction held a row for longer than the statement was willing to wait."""


class ConstraintViolation(Exception):
    """A constraint of the database refuses what a unit writes; nothing of the unit was written."""


class UniqueViolation(ConstraintViolation):
    """The row that a unit claims is there already; nothing of the unit was written."""


#: Primary result codes of SQLite that mean "not now" or "not here"; the others are our mistakes.
_SQLITE_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
    }
)


def check_committed(answer: str) -> None:
    """Raises `RolledBack` unless PostgreSQL's answer to COMMIT is that it did."""
    if answer != "COMMIT":
        raise RolledBack(
            f"COMMIT was answered with {answer}: a statement failed earlier and its error was caught"
        )


@contextmanager
def named_errors() -> Iterator[None]:
    """Raises `DatabaseUnavailable` and `LockTimeout` for what the drivers raise in the block."""
    try:
        yield
    except Exception as error:
        if _is(error, "LOCK_TIMEOUT"):
            raise LockTimeout(str(error)) from error
        if _is(error, "UNDONE"):
            raise Deadlock(str(error)) from error
        if _primary_code(error) == sqlite3.SQLITE_BUSY:
            raise FileLocked(str(error)) from error
        if is_lost(error):
            # A timeout has no error code of its own.
            silent = (
                "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
            )
            raise DatabaseUnavailable(str(error) or silent) from error
        raise


def is_lost(error: Exception) -> bool:
    """Whether the database is at fault, or the way to it, and not what it was given."""
    if isinstance(error, sqlite3.Error):
        return _primary_code(error) in _SQLITE_UNAVAILABLE
    if _is(error, "LOCK_TIMEOUT"):
        # To asyncpg a kind of the error of a database that takes no connections.
        return False
    # A value of the wrong type is an `InterfaceError` to asyncpg, and a mistake of ours.
    return (isinstance(error, OSError) or _is(error, "LOST")) and not isinstance(error, ValueError)


def _primary_code(error: Exception) -> int:
    """SQLite's code of an error, 0 for others: the low byte of an extended one, e.g. SQLITE_IOERR_WRITE."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_refusal(error: Exception) -> bool:
    """Whether a constraint refused the statement."""
    return isinstance(error, sqlite3.IntegrityError) or _is(error, "REFUSAL")


def _is(error: Exception, meaning: str) -> bool:
    """Whether asyncpg raised it, with that meaning in `postgres_errors`."""
    known = _postgres_errors()
    return known is not None and isinstance(error, getattr(known, meaning))


def _postgres_errors() -> ModuleType | None:
    # What is not loaded has raised nothing.
    if "asyncpg" not in sys.modules:
        return None
    from msgsvc_core.db import postgres_errors  # noqa: PLC0415 - 3 MiB, not on SQLite

    return postgres_errors
