"""Classifies asyncpg's exceptions. Imported only where asyncpg is loaded."""

import asyncpg

LOCK_TIMEOUT = asyncpg.LockNotAvailableError

REFUSAL = asyncpg.IntegrityConstraintViolationError

#: The server aborted this transaction in favour of others; a retry may succeed.
UNDONE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What a quarter of the connections said whose server process was ended in mid-transaction.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    # Its disk is full, its memory, or its connections.
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresIOError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    # An old primary after a failover, or one that is being maintained.
    asyncpg.ReadOnlySQLTransactionError,
    # A database that takes no connections (`ALLOW_CONNECTIONS false`).
    asyncpg.ObjectNotInPrerequisiteStateError,
)
