"""Requests for bots that people make on a messenger, without a token."""

import sqlalchemy as sa
from alembic import op

revision = "core_0020"
down_revision = "core_0019"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "core_channel_requests",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("request_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("plugin", sa.Text, nullable=False),
        # The key of the bot that manages it, and the username by which it is known.
        sa.Column("manager", sa.Text, nullable=False),
        sa.Column("username", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        # The bot's id on the platform, once it is made.
        sa.Column("account", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("manager", "username"),
    )
    op.create_index("core_channel_requests_age", "core_channel_requests", ["expires_at_ms"])
