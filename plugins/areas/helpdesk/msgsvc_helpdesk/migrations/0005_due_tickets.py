"""Tickets by when they are due."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0005"
down_revision = "helpdesk_0004"
phase = "expand"
transactional = False


def upgrade() -> None:
    running = sa.text("due_at_ms IS NOT NULL")
    op.create_index(
        "helpdesk_tickets_due",
        "helpdesk_tickets",
        ["project_id", "due_at_ms"],
        if_not_exists=True,
        sqlite_where=running,
        postgresql_where=running,
        postgresql_concurrently=True,
    )
