"""Mailings: one message to an audience, who is in it, and what became of each.

`core_recipients` is the ledger: one row for a person and mailing. Its key begins with the person, so
that erasing one finds their rows; the index by mailing is what the walk goes along. An index by status
is left out on purpose: every recipient's row changes its status once, and would be written twice.

`core_mailing_ways` are a mailing's ways out, one for each bot: how far its walk has come, and whom it
has in hand at the moment. `core_messages.job_id` is the mailing of a message.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0007"
down_revision = "core_0006"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.add_column("core_messages", sa.Column("job_id", Id))
    _index_creation(include=True)
    op.create_table(
        "core_mailings",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("audience", sa.Text, nullable=False),
        sa.Column("permission", sa.Text),
        sa.Column("metadata", sa.Text),
        sa.Column("per_minute", sa.Integer),
        sa.Column("expires_at_ms", Ms),
        sa.Column("send_at_ms", Ms),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("sent", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("skipped", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("resend_of", Id),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("started_at_ms", Ms),
        sa.Column("finished_at_ms", Ms),
        sa.Column("expanded_to", Id),
        sa.Column("next_us", Ms, nullable=False),
        sa.Column("timed_from_ms", Ms),
        sa.Column("timed_from", sa.Integer, nullable=False),
    )
    op.create_table(
        "core_mailing_ways",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("bot", sa.Text, primary_key=True),
        sa.Column("walked_to", Id, nullable=False),
        sa.Column("in_hand", sa.Text, nullable=False),
        sa.Column("is_done", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "job_id"],
            ["core_mailings.project_id", "core_mailings.job_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "core_recipients",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("bot", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("message_id", Id),
        sa.Column("reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("run_at_ms", Ms),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "core_recipients_walk", "core_recipients", ["project_id", "job_id", "subscriber_id"]
    )
    # Only who is to be tried again is in it.
    waits = sa.text("run_at_ms IS NOT NULL")
    op.create_index(
        "core_recipients_waiting",
        "core_recipients",
        ["project_id", "job_id", "bot", "run_at_ms"],
        sqlite_where=waits,
        postgresql_where=waits,
    )


def _index_creation(*, include: bool) -> None:
    """On PostgreSQL the id is in the index by time as a value, no key: without statistics yet, it was
    taken for the primary key's, and each look-up of a subscriber went through all of the project."""
    if op.get_context().dialect.name != "postgresql":
        return
    op.drop_index("core_subscribers_created", "core_subscribers")
    keys = ["project_id", "created_at_ms"]
    if include:
        op.create_index(
            "core_subscribers_created",
            "core_subscribers",
            keys,
            postgresql_include=["subscriber_id"],
        )
    else:
        op.create_index("core_subscribers_created", "core_subscribers", [*keys, "subscriber_id"])


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
