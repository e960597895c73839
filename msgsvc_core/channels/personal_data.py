"""What of the tables of channels is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="chats",
        table="core_chats",
        columns=("chat_id", "user_id", "lang", "seen_at_ms"),
        where="t.channel = :bot AND t.user_id = :user_id",
        order=("chat_id",),
    ),
    PersonalTable(
        section="unreadable_items",
        table="core_shelf",
        columns=("kind", "reason", "size", "received_at_ms"),
        where="t.channel = :bot AND t.user_id = :user_id",
        order=("item_id",),
    ),
)
