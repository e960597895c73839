"""The plugin's tables: chains, their versions, what stops them, and who is in them.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "drip_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _chains()
    _versions()
    _enrollments()


def _chains() -> None:
    op.create_table(
        "drip_chains",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("drip_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reentry", sa.Text, nullable=False),
        sa.Column("trigger_on", sa.Text, nullable=False),
        # Empty where the trigger has none.
        sa.Column("trigger_value", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        # All pauses that have ended, together; and when the one began that has not.
        sa.Column("paused_ms", Ms, nullable=False, server_default="0"),
        sa.Column("paused_at_ms", Ms),
    )
    op.create_index(
        "drip_chains_trigger", "drip_chains", ["project_id", "trigger_on", "trigger_value"]
    )


def _versions() -> None:
    op.create_table(
        "drip_versions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("drip_id", Id, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        # Steps, time zone and what stops them, as JSON.
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        _of_chain(),
    )
    op.create_table(
        "drip_stops",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("event", sa.Text, primary_key=True),
        sa.Column("drip_id", Id, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        _of_chain(),
    )
    op.create_index("drip_stops_chain", "drip_stops", ["project_id", "drip_id"])


def _enrollments() -> None:
    op.create_table(
        "drip_enrollments",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("enrollment_id", Id, primary_key=True),
        sa.Column("drip_id", Id, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        # From 0: how many steps are behind.
        sa.Column("next_step", sa.Integer, nullable=False),
        # In the chain's own time, which stands still while the chain is paused: the clock's, less all of
        # its pauses. Null while nothing can become due: at the end, and in a pause of the enrollment,
        # when `left_ms` is what is left.
        sa.Column("due_at_ms", Ms),
        sa.Column("left_ms", Ms),
        sa.Column("last_message_id", Id),
        sa.Column("reason", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("finished_at_ms", Ms),
        _of_chain(),
        # A person who is erased takes their enrollments along.
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    is_open, is_due = sa.text("finished_at_ms IS NULL"), sa.text("due_at_ms IS NOT NULL")
    # One open enrollment per chain and subscriber.
    op.create_index(
        "drip_enrollments_open",
        "drip_enrollments",
        ["project_id", "subscriber_id", "drip_id"],
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    # Looked for chain by chain, as each has a time of its own.
    op.create_index(
        "drip_enrollments_due",
        "drip_enrollments",
        ["project_id", "drip_id", "due_at_ms", "enrollment_id"],
        sqlite_where=is_due,
        postgresql_where=is_due,
    )
    # How many are at each step of a chain is counted by it.
    op.create_index(
        "drip_enrollments_at",
        "drip_enrollments",
        ["project_id", "drip_id", "version", "next_step"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    for name, columns in (
        ("subscriber", ["subscriber_id", "drip_id"]),
        ("chain", ["drip_id"]),
        ("status", ["drip_id", "status"]),
    ):
        op.create_index(
            f"drip_enrollments_{name}",
            "drip_enrollments",
            ["project_id", *columns, "enrollment_id"],
        )


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


def _of_chain() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "drip_id"],
        ["drip_chains.project_id", "drip_chains.drip_id"],
        ondelete="CASCADE",
    )
