"""What an entry copies, e.g. the answers of a form, so that it goes when that is deleted."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0006"
down_revision = "helpdesk_0005"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

#: What was said first in a ticket that was opened for something; of those that were merged since,
#: nobody can say any more which entry that was.
_BEFORE = (
    "UPDATE helpdesk_entries AS e SET source_id = t.source_id FROM helpdesk_tickets t"
    " WHERE t.project_id = e.project_id AND t.ticket_id = e.ticket_id AND t.source = 'form'"
    " AND t.source_id IS NOT NULL AND e.created_at_ms = t.created_at_ms AND e.entry_id ="
    " (SELECT MIN(f.entry_id) FROM helpdesk_entries f"
    " WHERE f.project_id = e.project_id AND f.ticket_id = e.ticket_id)"
)


def upgrade() -> None:
    op.add_column("helpdesk_entries", sa.Column("source_id", Id))
    op.execute(_BEFORE)
    op.create_index(
        "helpdesk_entries_source",
        "helpdesk_entries",
        ["project_id", "source_id"],
        sqlite_where=sa.text("source_id IS NOT NULL"),
        postgresql_where=sa.text("source_id IS NOT NULL"),
    )
