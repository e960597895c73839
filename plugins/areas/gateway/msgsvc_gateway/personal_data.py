"""What of the tables of gateways is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="gateway_messages",
        table="gateway_messages",
        # The content is deleted once it is sent.
        columns=(
            *("message_id", "to_hint", "channel", "status", "reason"),
            *("created_at_ms", "sent_at_ms"),
        ),
        order=("message_id",),
    ),
)
