"""Channels of a project's own, what is known of each bot, and which bot a person and a message know.

`bot` is a channel's key: the name of a configured channel, or the id of a project's own. People and
messages from before know the configured channel of their name.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0005"
down_revision = "core_0004"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "core_channels",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("channel_id", Id, nullable=False, unique=True),
        sa.Column("plugin", sa.Text, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        sa.Column("removed_at_ms", Ms),
    )
    op.create_table(
        "core_bots",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("settings_digest", sa.Text, nullable=False),
        sa.Column("profile", sa.Text),
        sa.Column("cursor", sa.Text),
        sa.Column("webhook_digest", sa.Text),
        sa.Column("webhook_at_ms", Ms),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "core_revisions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
    for table in ("core_subscribers", "core_messages"):
        op.add_column(table, sa.Column("bot", sa.Text, nullable=False, server_default=""))
        op.execute(f"UPDATE {table} SET bot = channel")
    _index_by("bot")


def _index_by(column: str) -> None:
    op.drop_index("core_messages_ref", "core_messages")
    op.create_index(
        "core_messages_ref",
        "core_messages",
        [column, "message_ref"],
        sqlite_where=sa.text("message_ref IS NOT NULL"),
        postgresql_where=sa.text("message_ref IS NOT NULL"),
    )
    op.drop_index("core_subscribers_user", "core_subscribers")
    op.create_index("core_subscribers_user", "core_subscribers", [column, "user_id"])
