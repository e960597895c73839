"""Tickets by what their list is filtered by, and their labels without a look at the labels of others."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0004"
down_revision = "helpdesk_0003"

_TICKETS = "helpdesk_tickets"
_TAGS = "helpdesk_ticket_tags"


def upgrade() -> None:
    for column in ("priority", "channel"):
        op.create_index(f"helpdesk_tickets_{column}", _TICKETS, ["project_id", column, "ticket_id"])
    has_one = sa.text("subscriber_id IS NOT NULL")
    op.create_index(
        "helpdesk_tickets_customer",
        _TICKETS,
        ["project_id", "subscriber_id", "ticket_id"],
        sqlite_where=has_one,
        postgresql_where=has_one,
    )
    op.create_index("helpdesk_tickets_created", _TICKETS, ["project_id", "created_at_ms"])
    # With the label in it: without, SQLite went through all labels of the project for each ticket.
    op.drop_index("helpdesk_ticket_tags_ticket", _TAGS)
    op.create_index("helpdesk_ticket_tags_ticket", _TAGS, ["project_id", "ticket_id", "tag"])
