"""The plugin's table: one-time codes.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "otp_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "otp_codes",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("otp_id", Id, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("purpose", sa.Text, nullable=False),
        # Null until somebody opens the link of a request.
        sa.Column("subscriber_id", Id),
        sa.Column("token_digest", sa.Text, unique=True),
        sa.Column("channel", sa.Text),
        sa.Column("lang", sa.Text),
        sa.Column("length", sa.Integer, nullable=False),
        sa.Column("ttl_minutes", sa.Integer, nullable=False),
        sa.Column("max_attempts", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("last_attempt_at_ms", Ms),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("issued_at_ms", Ms),
        # Of the link until it is opened, then of the code.
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("code_hash", sa.Text),
        sa.Column("sent_at_ms", Ms),
        sa.Column("reason", sa.Text),
        # A person who is erased takes their codes along.
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    # One active code per subscriber and purpose (decision 0075).
    op.create_index(
        "otp_codes_active",
        "otp_codes",
        ["project_id", "subscriber_id", "purpose"],
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        "otp_codes_subscriber", "otp_codes", ["project_id", "subscriber_id", "issued_at_ms"]
    )
    op.create_index("otp_codes_age", "otp_codes", ["created_at_ms"])


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
