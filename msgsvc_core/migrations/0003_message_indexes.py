"""Fewer indexes on messages: each is written on every send.

A message is always asked for with its project, so the primary key is enough; and what the platform
knows it by is only there once it is sent.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0003"
down_revision = "core_0002"


def upgrade() -> None:
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


def downgrade() -> None:
    op.drop_index("core_messages_ref", "core_messages")
    op.create_index("core_messages_ref", "core_messages", ["channel", "message_ref"])
    op.create_index("core_messages_id", "core_messages", ["message_id"], unique=True)
