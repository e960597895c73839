"""Maps the drivers' exceptions to a few named errors."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class DatabaseUnavailable(Exception):
    """The database can't be reached or written to, or aborted this transaction (`Deadlock`). Nothing was
    committed, and the transaction may be retried."""


class NotOpen(DatabaseUnavailable):
    """The service is not started, or has stopped."""


class FileLocked(DatabaseUnavailable):
    """Another process has locked SQLite's file, to write or to recover it."""


class Deadlock(DatabaseUnavailable):
    """PostgreSQL aborted this transaction to resolve a deadlock. Retrying usually succeeds; see
    `retry_on_deadlock`."""


class RolledBack(Exception):
    """PostgreSQL responded to COMMIT with ROLLBACK: a statement had failed in the transaction, outside of a
    `savepoint`, and the block continued. Nothing was committed. This is a bug; a retry won't help."""


class CopyRefused(Exception):
    """A copy, backup or restore of the database can't be made; the message says why, and what to do."""


class MigrationRefused(Exception):
    """The database can't be migrated now; the message says why, and what to do."""


class LockTimeout(Exception):
    """Another transaction held a row lock for longer than the statement's lock timeout."""


class ConstraintViolation(Exception):
    """A write batch violates a constraint of the database; nothing of the batch was written."""


class UniqueViolation(ConstraintViolation):
    """The row that a write batch requires to be new exists; nothing of the batch was written."""


#: Primary result codes of SQLite that mean that the database is unavailable; the others are bugs.
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
    """Raises `RolledBack` unless PostgreSQL's response to COMMIT confirms it."""
    if answer != "COMMIT":
        raise RolledBack(
            f"COMMIT was answered with {answer}: a statement failed earlier and its error was caught"
        )


@contextmanager
def named_errors() -> Iterator[None]:
    """Translates the drivers' exceptions in the block to `DatabaseUnavailable` and `LockTimeout`."""
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
    """Whether the database or the connection to it failed, rather than the statement."""
    if isinstance(error, sqlite3.Error):
        return _primary_code(error) in _SQLITE_UNAVAILABLE
    if _is(error, "LOCK_TIMEOUT"):
        # asyncpg derives it from the error of a database that accepts no connections.
        return False
    # asyncpg raises an `InterfaceError` for a value of the wrong type too, which is a bug.
    return (isinstance(error, OSError) or _is(error, "LOST")) and not isinstance(error, ValueError)


def _primary_code(error: Exception) -> int:
    """SQLite's primary code of an error, 0 for others: the low byte of an extended one, e.g.
    SQLITE_IOERR_WRITE."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def is_refusal(error: Exception) -> bool:
    """Whether the statement violated a constraint."""
    return isinstance(error, sqlite3.IntegrityError) or _is(error, "REFUSAL")


def _is(error: Exception, meaning: str) -> bool:
    """Whether it is one of asyncpg's exceptions that `postgres_errors` lists under `meaning`."""
    known = _postgres_errors()
    return known is not None and isinstance(error, getattr(known, meaning))


def _postgres_errors() -> ModuleType | None:
    # If asyncpg isn't loaded, it hasn't raised the error.
    if "asyncpg" not in sys.modules:
        return None
    from msgsvc_core.db import postgres_errors  # noqa: PLC0415 - 3 MiB, not on SQLite

    return postgres_errors
