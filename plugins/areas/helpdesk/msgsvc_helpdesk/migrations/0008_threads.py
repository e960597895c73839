"""The threads of chats in which tickets are talked about, where a messenger has them."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0008"
down_revision = "helpdesk_0007"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "helpdesk_threads",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, primary_key=True),
        # The key of the channel, and its platform's ids.
        sa.Column("bot", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        # NULL while it is being opened.
        sa.Column("thread", sa.Text),
        sa.ForeignKeyConstraint(
            ["project_id", "ticket_id"],
            ["helpdesk_tickets.project_id", "helpdesk_tickets.ticket_id"],
            ondelete="CASCADE",
        ),
        sa.UniqueConstraint("bot", "chat_id", "thread"),
    )
