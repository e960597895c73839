"""What of the tables of messages is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="messages",
        table="core_messages",
        columns=(
            *("message_id", "channel", "status", "content", "shown", "metadata", "reason", "error"),
            *("permission", "batch_id", "job_id", "created_at_ms", "edited_at_ms", "deleted_at_ms"),
            *("finished_at_ms", "delivered_at_ms", "read_at_ms", "route_id"),
        ),
        json=("content", "shown", "metadata"),
        order=("message_id",),
    ),
    PersonalTable(
        section="message_copies",
        table="core_message_copies",
        columns=(
            *("message_id", "step", "channel", "status", "reason", "error"),
            *("finished_at_ms", "delivered_at_ms", "read_at_ms"),
        ),
        order=("message_id", "step"),
    ),
)
