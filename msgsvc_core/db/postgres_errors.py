"""Classifies asyncpg's exceptions. Imported only where asyncpg is loaded."""

import asyncpg

LOCK_TIMEOUT = asyncpg.LockNotAvailableError

REFUSAL = asyncpg.IntegrityConstraintViolationError

#: The server aborted this transaction in favour of others; a retry may succeed.
UNDONE = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # Raised by a quarter of the connections whose server process was killed in mid-transaction.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    # The server is out of disk space, memory or connections.
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresIOError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    # A former primary after a failover, or one in maintenance.
    asyncpg.ReadOnlySQLTransactionError,
    # A database that accepts no connections (`ALLOW_CONNECTIONS false`).
    asyncpg.ObjectNotInPrerequisiteStateError,
)
