"""What of the tables of drip campaigns is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="drip_campaigns",
        table="drip_enrollments",
        columns=(
            *("enrollment_id", "drip_id", "status", "next_step", "reason", "created_at_ms"),
            "finished_at_ms",
        ),
        order=("enrollment_id",),
    ),
)
