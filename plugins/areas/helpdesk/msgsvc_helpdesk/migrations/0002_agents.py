"""What agents are shown of tickets in their messengers, and ratings that wait for a comment.

`helpdesk_agent_messages` are messages of the bot to agents, by which an answer finds its ticket;
`message_ref` is null until the messenger has taken it, and `shown` says what it is to look like.
`helpdesk_agent_chats` has what an agent's chat is about: the ticket that they opened last, and a text of
which they are asked where it is to go. `helpdesk_agent_files` are files of agents that are not here yet.
All of it ends with the agent's subscriber, and with the ticket.
"""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0002"
down_revision = "helpdesk_0001"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "helpdesk_agent_messages",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("note_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("bot", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("message_ref", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        _of_subscriber(),
        _of_ticket(),
    )
    op.create_index(
        "helpdesk_agent_messages_ref",
        "helpdesk_agent_messages",
        ["bot", "chat_id", "message_ref"],
    )
    op.create_index(
        "helpdesk_agent_messages_ticket", "helpdesk_agent_messages", ["project_id", "ticket_id"]
    )
    op.create_index(
        "helpdesk_agent_messages_subscriber",
        "helpdesk_agent_messages",
        ["project_id", "subscriber_id"],
    )
    op.create_table(
        "helpdesk_agent_chats",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("ticket_id", Id),
        sa.Column("draft_id", Id),
        sa.Column("draft", sa.Text),
        _of_subscriber(),
    )
    op.create_table(
        "helpdesk_agent_files",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        _of_subscriber(),
        _of_ticket(),
    )
    op.create_table(
        "helpdesk_ratings",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("bot", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("message_ref", sa.Text, nullable=False),
        sa.Column("ends_at_ms", Ms, nullable=False),
        _of_subscriber(),
        _of_ticket(),
    )
    op.create_index("helpdesk_ratings_chat", "helpdesk_ratings", ["bot", "chat_id"])


def _of_subscriber() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "subscriber_id"],
        ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
        ondelete="CASCADE",
    )


def _of_ticket() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "ticket_id"],
        ["helpdesk_tickets.project_id", "helpdesk_tickets.ticket_id"],
        ondelete="CASCADE",
    )
