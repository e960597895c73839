"""The database: the only place that knows `databases`, its drivers and their differences."""

from msgsvc_core.db.again import again_if_undone
from msgsvc_core.db.database import Database
from msgsvc_core.db.errors import (
    DatabaseUnavailable,
    LockTimeout,
    Refused,
    RolledBack,
    Taken,
    Undone,
)
from msgsvc_core.db.lookup import Lookup
from msgsvc_core.db.revisions import (
    CORE_MIGRATIONS,
    DatabaseTooNew,
    MigrationSource,
    applied_revisions,
    migrate,
    pending_revisions,
)
from msgsvc_core.db.together import Together
from msgsvc_core.db.tx import Row, Tx
from msgsvc_core.db.unit import Unit

__all__ = [
    "CORE_MIGRATIONS",
    "Database",
    "DatabaseTooNew",
    "DatabaseUnavailable",
    "LockTimeout",
    "Lookup",
    "MigrationSource",
    "Refused",
    "RolledBack",
    "Row",
    "Taken",
    "Together",
    "Tx",
    "Undone",
    "Unit",
    "again_if_undone",
    "applied_revisions",
    "migrate",
    "pending_revisions",
]
