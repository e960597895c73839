"""What of the tables of members is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="member_accounts",
        table="core_member_subscribers",
        columns=("member_id", "linked_at_ms"),
        order=("linked_at_ms",),
    ),
)
