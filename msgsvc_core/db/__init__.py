"""The database: the only place that knows `databases`, its drivers and their differences."""

from msgsvc_core.db.database import Database, DatabaseUnavailable, LockTimeout, Row, Tx
from msgsvc_core.db.migrations import (
    DatabaseTooNew,
    MigrationSource,
    applied_revisions,
    migrate,
    pending_revisions,
)

__all__ = [
    "Database",
    "DatabaseTooNew",
    "DatabaseUnavailable",
    "LockTimeout",
    "MigrationSource",
    "Row",
    "Tx",
    "applied_revisions",
    "migrate",
    "pending_revisions",
]
