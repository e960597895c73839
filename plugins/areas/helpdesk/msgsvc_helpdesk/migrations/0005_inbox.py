"""Indexes for the inbox: tickets by what was said last, by status, agent and priority, and what changed."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0005"
down_revision = "helpdesk_0004"

_LAST = ["last_message_at_ms", "ticket_id"]


def upgrade() -> None:
    _index("activity", ["project_id", *_LAST])
    _index("inbox", ["project_id", "status", *_LAST])
    _index("desk", ["project_id", "assignee_id", "status", *_LAST])
    _index("changed", ["project_id", "updated_at_ms"])
    op.create_index(
        "helpdesk_tickets_waits",
        "helpdesk_tickets",
        ["project_id", "waiting_since_ms"],
        sqlite_where=sa.text("waiting_since_ms IS NOT NULL"),
        postgresql_where=sa.text("waiting_since_ms IS NOT NULL"),
    )
    op.create_index(
        "helpdesk_tickets_urgency",
        "helpdesk_tickets",
        ["project_id", "priority", *_LAST],
        sqlite_where=sa.text("priority <> 'normal'"),
        postgresql_where=sa.text("priority <> 'normal'"),
    )


def _index(name: str, columns: list[str]) -> None:
    op.create_index(f"helpdesk_tickets_{name}", "helpdesk_tickets", columns)
