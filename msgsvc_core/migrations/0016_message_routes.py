"""Messages that are sent by a route, and their copies on each channel."""

import sqlalchemy as sa
from alembic import op

revision = "core_0016"
down_revision = "core_0015"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.add_column("core_messages", sa.Column("route_id", Id))
    # JSON: those of the route when the message was accepted.
    op.add_column("core_messages", sa.Column("route_steps", sa.Text))
    # The number of the step that it is at, from 0.
    op.add_column("core_messages", sa.Column("route_step", sa.Integer))
    # What it waits for after the step's call: while it is `sending`, no call is in progress.
    op.add_column("core_messages", sa.Column("waits_for", sa.Text))
    op.create_table(
        "core_message_copies",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("message_id", Id, primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True),
        sa.Column("channel", sa.Text, nullable=False),
        # Of a step that was passed over, nobody is known.
        sa.Column("subscriber_id", Id),
        sa.Column("bot", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("message_ref", sa.Text),
        # Whose answer ends the route, while it is open.
        sa.Column("answerer", sa.Text),
        sa.Column("finished_at_ms", Ms, nullable=False),
        sa.Column("delivered_at_ms", Ms),
        sa.Column("read_at_ms", Ms),
    )
    op.create_index(
        "core_message_copies_ref",
        "core_message_copies",
        ["bot", "message_ref"],
        sqlite_where=sa.text("message_ref IS NOT NULL"),
        postgresql_where=sa.text("message_ref IS NOT NULL"),
    )
    op.create_index(
        "core_message_copies_answerer",
        "core_message_copies",
        ["bot", "answerer"],
        sqlite_where=sa.text("answerer IS NOT NULL"),
        postgresql_where=sa.text("answerer IS NOT NULL"),
    )
    op.create_index(
        "core_message_copies_subscriber",
        "core_message_copies",
        ["project_id", "subscriber_id", "message_id"],
        sqlite_where=sa.text("subscriber_id IS NOT NULL"),
        postgresql_where=sa.text("subscriber_id IS NOT NULL"),
    )
