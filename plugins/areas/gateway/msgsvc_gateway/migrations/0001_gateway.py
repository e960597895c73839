"""The plugin's tables: gateways, and the messages that were sent through them.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "gateway_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "gateway_gateways",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("gateway_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("sender", sa.Text, nullable=False),
        # Names, as a JSON array.
        sa.Column("channels", sa.Text, nullable=False),
        # Encrypted.
        sa.Column("signing_key", sa.Text),
        # Of the secret in the URL, which names no project.
        sa.Column("secret_digest", sa.Text, nullable=False, unique=True),
        sa.Column("old_secret_digest", sa.Text, unique=True),
        sa.Column("old_secret_until_ms", Ms),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "gateway_messages",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("message_id", Id, primary_key=True),
        sa.Column("gateway_id", Id, nullable=False),
        sa.Column("to_hint", sa.Text, nullable=False),
        # The keyed hash of the recipient's phone number or email address.
        sa.Column("to_hash", sa.Text, nullable=False),
        # The digest of the request, by which one that is repeated is recognised.
        sa.Column("once_digest", sa.Text),
        # The ids of subscribers, as a JSON array, and the position of the one who is tried.
        sa.Column("people", sa.Text, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("subscriber_id", Id),
        sa.Column("channel", sa.Text, nullable=False),
        # The content, encrypted, until it is sent.
        sa.Column("sealed", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("sent_at_ms", Ms),
        sa.ForeignKeyConstraint(
            ["project_id", "gateway_id"],
            ["gateway_gateways.project_id", "gateway_gateways.gateway_id"],
            ondelete="CASCADE",
        ),
        # A person who is erased takes their messages along.
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "gateway_messages_gateway",
        "gateway_messages",
        ["project_id", "gateway_id", "message_id"],
    )
    op.create_index(
        "gateway_messages_once",
        "gateway_messages",
        ["project_id", "gateway_id", "once_digest"],
        unique=True,
    )
    op.create_index(
        "gateway_messages_recipient",
        "gateway_messages",
        ["project_id", "gateway_id", "to_hash", "created_at_ms"],
    )
    # For erasures, and for the hourly purge.
    op.create_index(
        "gateway_messages_subscriber", "gateway_messages", ["project_id", "subscriber_id"]
    )
    op.create_index("gateway_messages_age", "gateway_messages", ["created_at_ms"])


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
