"""What of the tables of codes is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="one_time_codes",
        table="otp_codes",
        # Never the code, not even its hash.
        columns=(
            *("otp_id", "status", "purpose", "channel", "lang", "attempts", "reason"),
            *("created_at_ms", "sent_at_ms", "last_attempt_at_ms", "expires_at_ms"),
        ),
        order=("otp_id",),
    ),
    PersonalTable(
        section="one_time_codes_by_route",
        table="otp_recipients",
        columns=("otp_id", "step", "sent_at_ms", "reason"),
        order=("otp_id",),
    ),
)
