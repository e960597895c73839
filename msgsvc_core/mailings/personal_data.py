"""What of the tables of mailings is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="mailings",
        table="core_recipients",
        columns=("job_id", "status", "message_id", "reason", "error"),
        order=("job_id",),
    ),
)
