"""The drivers' many ways of saying that a statement failed, under a few names."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg


class DatabaseUnavailable(Exception):
    """The database can't be reached, or can't write. Nothing was committed by this transaction."""


class LockTimeout(Exception):
    """Another transaction held a row for longer than the statement was willing to wait."""


class Refused(Exception):
    """A constraint of the database refuses what a unit writes; nothing of the unit was written."""


class Taken(Refused):
    """The row that a unit claims is there already; nothing of the unit was written."""


_LOST = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What a quarter of the connections said whose server process was ended in mid-transaction.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
)

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


@contextmanager
def named_errors() -> Iterator[None]:
    """Raises `DatabaseUnavailable` and `LockTimeout` for what the drivers raise in the block."""
    try:
        yield
    except asyncpg.LockNotAvailableError as error:
        raise LockTimeout(str(error)) from error
    except _LOST as error:
        # A value of the wrong type is an `InterfaceError` to asyncpg, and a mistake of ours.
        if isinstance(error, ValueError):
            raise
        raise DatabaseUnavailable(str(error) or type(error).__name__) from error
    except sqlite3.DatabaseError as error:
        # The low byte of an extended code, e.g. SQLITE_IOERR_WRITE, is the primary one.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_UNAVAILABLE:
            raise DatabaseUnavailable(str(error)) from error
        raise


def is_lost(error: Exception) -> bool:
    """Whether the database is at fault, or the way to it, and not what it was given."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_UNAVAILABLE
    # A value of the wrong type is an `InterfaceError` to asyncpg, and a mistake of ours.
    return isinstance(error, _LOST) and not isinstance(error, ValueError)


def is_refusal(error: Exception) -> bool:
    """Whether a constraint refused the statement."""
    return isinstance(error, sqlite3.IntegrityError | asyncpg.IntegrityConstraintViolationError)
