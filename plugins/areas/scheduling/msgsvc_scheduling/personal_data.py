"""What of the tables of scheduled messages is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="scheduled_messages",
        table="scheduling_records",
        columns=(
            *("record_id", "kind", "status", "message", "send_at_ms", "due_at_ms"),
            *("created_at_ms", "last_run_at_ms", "finished_at_ms"),
        ),
        json=("message",),
        order=("record_id",),
    ),
)
