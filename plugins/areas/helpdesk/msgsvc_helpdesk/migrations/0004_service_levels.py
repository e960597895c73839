"""Service levels of desks, and how far tickets are from their targets."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0004"
down_revision = "helpdesk_0003"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    # As JSON; null while the project has none.
    op.add_column("helpdesk_desks", sa.Column("sla", sa.Text))
    # When the first of its targets is missed, or was; null while none runs.
    op.add_column("helpdesk_tickets", sa.Column("due_at_ms", Ms))
    op.create_table(
        "helpdesk_sla_clocks",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, primary_key=True),
        sa.Column("target", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        # Counted before since_ms.
        sa.Column("used_ms", Ms, nullable=False),
        # Only while it runs.
        sa.Column("since_ms", Ms),
        sa.Column("due_at_ms", Ms),
        sa.Column("next_at_ms", Ms),
        # What was told of the present run, and what became of all of them.
        sa.Column("notice", sa.Text),
        sa.Column("outcome", sa.Text),
        sa.ForeignKeyConstraint(
            ["project_id", "ticket_id"],
            ["helpdesk_tickets.project_id", "helpdesk_tickets.ticket_id"],
            ondelete="CASCADE",
        ),
    )
    running = sa.text("next_at_ms IS NOT NULL")
    op.create_index(
        "helpdesk_sla_clocks_next",
        "helpdesk_sla_clocks",
        ["next_at_ms"],
        sqlite_where=running,
        postgresql_where=running,
    )
