"""What of the tables of webhooks is personal data."""

from msgsvc_core.db.personal_data import NotExported

PERSONAL_DATA = (
    NotExported("webhooks_deliveries", "copies of events, as they were sent to the project"),
)
