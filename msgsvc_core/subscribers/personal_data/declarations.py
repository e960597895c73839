"""What of the tables of subscribers is personal data."""

from msgsvc_core.db.personal_data import NotExported, PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="permissions",
        table="core_subscriber_permissions",
        columns=("permission", "granted_at_ms"),
        order=("granted_at_ms", "permission"),
    ),
    NotExported("core_subscribers", "the profile shows it"),
    NotExported("core_subscriber_tags", "the profile shows them"),
    NotExported("core_subscriber_contacts", "the profile shows them, decrypted"),
)
