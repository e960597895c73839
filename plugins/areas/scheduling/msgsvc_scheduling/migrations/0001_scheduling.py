"""The plugin's table: messages that wait for their time.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "scheduling_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "scheduling_records",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("record_id", Id, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        # Of these two one is given.
        sa.Column("subscriber_id", Id),
        sa.Column("audience", sa.Text),
        sa.Column("timezone", sa.Text),
        # Of what is sent once: its time. Of what comes again: when, as JSON.
        sa.Column("send_at_ms", Ms),
        sa.Column("rule", sa.Text),
        # When it is to be sent next; null while it does not wait.
        sa.Column("due_at_ms", Ms),
        sa.Column("message_id", Id),
        sa.Column("job_id", Id),
        sa.Column("reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("last_run_at_ms", Ms),
        sa.Column("finished_at_ms", Ms),
        # A person who is erased takes what waits for them along.
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "scheduling_records_due",
        "scheduling_records",
        ["due_at_ms", "project_id", "record_id"],
        sqlite_where=sa.text("due_at_ms IS NOT NULL"),
        postgresql_where=sa.text("due_at_ms IS NOT NULL"),
    )
    op.create_index(
        "scheduling_records_subscriber", "scheduling_records", ["project_id", "subscriber_id"]
    )
    op.create_index(
        "scheduling_records_open",
        "scheduling_records",
        ["project_id"],
        sqlite_where=sa.text("finished_at_ms IS NULL"),
        postgresql_where=sa.text("finished_at_ms IS NULL"),
    )
    op.create_index("scheduling_records_age", "scheduling_records", ["finished_at_ms"])
    # By kind and status, in the order of their lists.
    of_kind = ["project_id", "kind"]
    op.create_index("scheduling_records_kind", "scheduling_records", [*of_kind, "record_id"])
    op.create_index(
        "scheduling_records_status", "scheduling_records", [*of_kind, "status", "record_id"]
    )


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
