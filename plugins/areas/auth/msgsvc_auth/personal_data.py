"""What of the tables of sign-ins is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="sign_ins",
        table="auth_sessions",
        # Never the tokens and codes, not even their hashes.
        columns=(
            *("session_id", "status", "channel", "lang", "source", "requester_name", "client_ip"),
            *("client_agent", "created_at_ms", "confirmed_at_ms", "expires_at_ms"),
        ),
        order=("session_id",),
    ),
)
