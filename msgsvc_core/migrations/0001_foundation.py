"""The core's tables: projects, keys, subscribers, chats, messages, events, jobs, idempotency.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
Tables written on every send carry no foreign keys: they would be checked on the hottest path.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0001"
down_revision = None

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _projects()
    _subscribers()
    _chats()
    _messages()
    _jobs()


def _projects() -> None:
    op.create_table(
        "core_projects",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_api_keys",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("prefix", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False, unique=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("last_used_at_ms", Ms),
        sa.Column("revoked_at_ms", Ms),
    )
    op.create_table(
        "core_idempotency",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("body", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_index("core_idempotency_age", "core_idempotency", ["created_at_ms"])


def _subscribers() -> None:
    op.create_table(
        "core_subscribers",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("first_name", sa.Text, nullable=False),
        sa.Column("username", sa.Text),
        sa.Column("lang", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("last_seen_at_ms", Ms, nullable=False),
        sa.UniqueConstraint("project_id", "channel", "user_id"),
        sa.UniqueConstraint("project_id", "external_id", "channel"),
    )
    op.create_index("core_subscribers_user", "core_subscribers", ["channel", "user_id"])
    op.create_table(
        "core_tags",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_subscriber_tags",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("tag", sa.Text, primary_key=True),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "tag"],
            ["core_tags.project_id", "core_tags.name"],
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
    )
    op.create_index("core_subscriber_tags_tag", "core_subscriber_tags", ["project_id", "tag"])
    op.create_table(
        "core_links",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("external_id", sa.Text),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    op.create_index("core_links_digest", "core_links", ["digest"])


def _chats() -> None:
    op.create_table(
        "core_chats",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("chat_id", sa.Text, primary_key=True),
        sa.Column("user_id", sa.Text, nullable=False),
        sa.Column("project_id", Id, _project()),
        sa.Column("seen_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_updates",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("update_id", sa.Text, primary_key=True),
        sa.Column("received_at_ms", Ms, nullable=False),
    )
    op.create_index("core_updates_age", "core_updates", ["received_at_ms"])


def _messages() -> None:
    op.create_table(
        "core_messages",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("message_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("message_ref", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms),
        sa.Column("finished_at_ms", Ms),
    )
    op.create_index("core_messages_id", "core_messages", ["message_id"], unique=True)
    op.create_index(
        "core_messages_subscriber", "core_messages", ["project_id", "subscriber_id", "message_id"]
    )
    op.create_index("core_messages_ref", "core_messages", ["channel", "message_ref"])
    op.create_table(
        "core_events",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("event_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("occurred_at_ms", Ms, nullable=False),
    )
    op.create_index("core_events_age", "core_events", ["occurred_at_ms"])


def _jobs() -> None:
    op.create_table(
        "core_jobs",
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("project_id", Id),
        sa.Column("lane", sa.Text, nullable=False),
        sa.Column("priority", sa.SmallInteger, nullable=False),
        sa.Column("run_at_ms", Ms, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("key", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("deliveries", sa.Integer, nullable=False),
        sa.Column("leased_by", sa.Text),
        sa.Column("leased_until_ms", Ms),
        sa.Column("last_error", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_index(
        "core_jobs_due", "core_jobs", ["lane", "state", "priority", "run_at_ms", "job_id"]
    )
    op.create_index("core_jobs_lease", "core_jobs", ["leased_by", "state"])
    open_and_keyed = sa.text("key IS NOT NULL AND state <> 'dead'")
    op.create_index(
        "core_jobs_key",
        "core_jobs",
        ["name", "key"],
        unique=True,
        sqlite_where=open_and_keyed,
        postgresql_where=open_and_keyed,
    )
    op.create_table(
        "core_lanes",
        sa.Column("lane", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("leased_until_ms", Ms, nullable=False),
    )


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
