"""What of the tables of events is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="events",
        table="core_events",
        columns=("event_id", "name", "data", "occurred_at_ms"),
        json=("data",),
        where="t.project_id = :project_id AND t.history_of = :subscriber_id",
        order=("event_id",),
    ),
)
