"""What of the tables of bulk actions is personal data."""

from msgsvc_core.db.personal_data import NotExported

PERSONAL_DATA = (
    NotExported("core_bulk_targets", "ids of those whom a bulk action has yet to reach"),
)
