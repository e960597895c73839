"""The database: the only package that uses `databases` and the drivers, and handles their differences."""

from msgsvc_core.db.data_loader import DataLoader
from msgsvc_core.db.database import Database
from msgsvc_core.db.errors import (
    ConstraintViolation,
    DatabaseUnavailable,
    Deadlock,
    LockTimeout,
    MigrationRefused,
    RolledBack,
    UniqueViolation,
)
from msgsvc_core.db.retrying import retry_on_deadlock
from msgsvc_core.db.revisions import (
    CORE_MIGRATIONS,
    DatabaseTooNew,
    MigrationSource,
    Phase,
    applied_revisions,
)
from msgsvc_core.db.transaction_batcher import TransactionBatcher
from msgsvc_core.db.tx import Row, Tx, shielded
from msgsvc_core.db.upgrading import migrate, pending_revisions, read_schema, read_schema_in
from msgsvc_core.db.write_batch import WriteBatch

__all__ = [
    "CORE_MIGRATIONS",
    "ConstraintViolation",
    "DataLoader",
    "Database",
    "DatabaseTooNew",
    "DatabaseUnavailable",
    "Deadlock",
    "LockTimeout",
    "MigrationRefused",
    "MigrationSource",
    "Phase",
    "RolledBack",
    "Row",
    "TransactionBatcher",
    "Tx",
    "UniqueViolation",
    "WriteBatch",
    "applied_revisions",
    "migrate",
    "pending_revisions",
    "read_schema",
    "read_schema_in",
    "retry_on_deadlock",
    "shielded",
]
