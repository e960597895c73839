"""How agents share tickets: settings of the project and of each agent, and who has seen which ticket."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0002"
down_revision = "helpdesk_0001"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    # The project's own settings as JSON; null while it has none.
    op.add_column("helpdesk_desks", sa.Column("settings", sa.Text))
    op.create_table(
        "helpdesk_agents",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("member_id", Id, primary_key=True),
        sa.Column("available", sa.Boolean, nullable=False),
        # Open tickets that are assigned automatically at most; null for no limit.
        sa.Column("max_open_tickets", sa.Integer),
        # Whether single keys act on the pages of tickets.
        sa.Column("shortcuts", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "member_id"],
            ["core_members.project_id", "core_members.member_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "helpdesk_views",
        sa.Column("project_id", Id, primary_key=True),
        # A member; or the account of an owner who is none yet.
        sa.Column("viewer_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, primary_key=True),
        sa.Column("seen_at_ms", Ms, nullable=False),
        sa.Column("typed_at_ms", Ms),
        sa.ForeignKeyConstraint(
            ["project_id", "ticket_id"],
            ["helpdesk_tickets.project_id", "helpdesk_tickets.ticket_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index("helpdesk_views_ticket", "helpdesk_views", ["project_id", "ticket_id"])
    # Those who look at tickets now are the last in it.
    op.create_index("helpdesk_views_seen", "helpdesk_views", ["project_id", "seen_at_ms"])
