"""Fewer indexes on messages: each is written on every send.

A message is always asked for with its project, so the primary key is enough; and what the platform
knows it by is only there once it is sent.

By subscriber there is none on SQLite. It writes whole pages, and every message of a batch goes to
another page of that index: it made two thirds of what a batch of 32 cost. There a list of one
subscriber's messages goes through the project's; PostgreSQL writes the changed bytes, and keeps it.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0003"
down_revision = "core_0002"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.drop_index("core_messages_subscriber", "core_messages")
    op.drop_index("core_messages_id", "core_messages")
    op.drop_index("core_messages_ref", "core_messages")
    sent = sa.text("message_ref IS NOT NULL")
    op.create_index(
        "core_messages_ref",
        "core_messages",
        ["channel", "message_ref"],
        sqlite_where=sent,
        postgresql_where=sent,
    )
