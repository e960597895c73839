"""The plugin's tables: tickets, what was said in them and what agents are shown, whose messages open none,
and canned answers.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
No ticket ends with a subscriber's row: who is erased is taken out of their tickets, which stay
for the numbers (docs/decisions/0040-tickets.md).
"""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _desks()
    _tickets()
    _entries()
    _blocklist()
    _canned_answers()
    _agents()
    _ratings()


def _desks() -> None:
    op.create_table(
        "helpdesk_desks",
        sa.Column("project_id", Id, _project(), primary_key=True),
        # Of the newest ticket; numbers count from 1.
        sa.Column("last_number", sa.BigInteger, nullable=False),
        # Whose turn it was last, where agents are assigned in turn.
        sa.Column("last_assignee_id", Id),
    )


def _tickets() -> None:
    op.create_table(
        "helpdesk_tickets",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("ticket_id", Id, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        # The subscriber's, or `virtual` for who has no messenger.
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("subscriber_id", Id),
        sa.Column("customer_name", sa.Text, nullable=False),
        sa.Column("customer_email", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("priority", sa.Text, nullable=False),
        sa.Column("assignee_id", Id),
        # What opened it, and that one's own id where there is one.
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("source_id", Id),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        # Of the newest message that is no note.
        sa.Column("last_message_at_ms", Ms, nullable=False),
        # Since when the customer waits for an answer; null while they don't.
        sa.Column("waiting_since_ms", Ms),
        # When that was told of, once in each time of waiting.
        sa.Column("told_waiting_at_ms", Ms),
        sa.Column("snoozed_until_ms", Ms),
        sa.Column("first_response_at_ms", Ms),
        sa.Column("closed_at_ms", Ms),
        sa.Column("merged_into", Id),
        sa.Column("csat_score", sa.Integer),
        sa.Column("csat_comment", sa.Text),
        sa.Column("csat_at_ms", Ms),
        sa.Column("erased_at_ms", Ms),
    )
    op.create_index(
        "helpdesk_tickets_number", "helpdesk_tickets", ["project_id", "number"], unique=True
    )
    _partial_index("source", ["project_id", "source", "source_id"], "source_id IS NOT NULL", True)
    _partial_index(
        "subscriber",
        ["project_id", "subscriber_id", "last_message_at_ms"],
        "subscriber_id IS NOT NULL",
    )
    _partial_index("snoozed", ["snoozed_until_ms"], "snoozed_until_ms IS NOT NULL")
    _partial_index(
        "waiting",
        ["waiting_since_ms"],
        "waiting_since_ms IS NOT NULL AND told_waiting_at_ms IS NULL",
    )
    _partial_index("closed", ["closed_at_ms"], "closed_at_ms IS NOT NULL")
    _partial_index("merged", ["project_id", "merged_into"], "merged_into IS NOT NULL")
    _partial_index(
        "customer", ["project_id", "subscriber_id", "ticket_id"], "subscriber_id IS NOT NULL"
    )
    _partial_index("waits", ["project_id", "waiting_since_ms"], "waiting_since_ms IS NOT NULL")
    newest = ["last_message_at_ms", "ticket_id"]
    _partial_index("urgency", ["project_id", "priority", *newest], "priority <> 'normal'")
    for name, columns in (
        # By what the list is filtered by.
        ("status", ["status", "ticket_id"]),
        ("assignee", ["assignee_id", "ticket_id"]),
        ("priority", ["priority", "ticket_id"]),
        ("channel", ["channel", "ticket_id"]),
        ("created", ["created_at_ms"]),
        # For the inbox, which goes by what was said last.
        ("activity", newest),
        ("inbox", ["status", *newest]),
        ("desk", ["assignee_id", "status", *newest]),
        ("changed", ["updated_at_ms"]),
    ):
        op.create_index(f"helpdesk_tickets_{name}", "helpdesk_tickets", ["project_id", *columns])
    op.create_table(
        "helpdesk_ticket_tags",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("tag", sa.Text, primary_key=True),
        sa.Column("ticket_id", Id, primary_key=True),
        _of_ticket(),
    )
    # With the label in it: without, SQLite went through all labels of the project for each ticket.
    op.create_index(
        "helpdesk_ticket_tags_ticket", "helpdesk_ticket_tags", ["project_id", "ticket_id", "tag"]
    )


def _partial_index(name: str, columns: list[str], where: str, unique: bool = False) -> None:
    op.create_index(
        f"helpdesk_tickets_{name}",
        "helpdesk_tickets",
        columns,
        unique=unique,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )


def _entries() -> None:
    op.create_table(
        "helpdesk_entries",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("entry_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("member_id", Id),
        sa.Column("internal", sa.Boolean, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("format", sa.Text, nullable=False),
        # A file by its address, as JSON; files of the core are in helpdesk_entry_files.
        sa.Column("media", sa.Text),
        # The core's message that brings an agent's answer to the customer.
        sa.Column("message_id", Id),
        # What the customer's messenger calls their message, by which a change of it is known.
        sa.Column("bot", sa.Text),
        sa.Column("chat_id", sa.Text),
        sa.Column("message_ref", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("edited_at_ms", Ms),
        # Of what the messenger calls its files, so that others are noticed.
        sa.Column("files_digest", sa.Text),
        # What it copies, e.g. the answers of a form, so that it goes when that is deleted.
        sa.Column("source_id", Id),
        _of_ticket(),
    )
    op.create_index(
        "helpdesk_entries_ticket", "helpdesk_entries", ["project_id", "ticket_id", "entry_id"]
    )
    _index_where("ref", ["bot", "chat_id", "message_ref"], "message_ref IS NOT NULL")
    _index_where("message", ["project_id", "message_id"], "message_id IS NOT NULL")
    _index_where("source", ["project_id", "source_id"], "source_id IS NOT NULL")
    op.create_table(
        "helpdesk_entry_files",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("entry_id", Id, primary_key=True),
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
        _of_entry(),
    )
    # For a file that is fetched, or to be removed.
    op.create_index("helpdesk_entry_files_file", "helpdesk_entry_files", ["project_id", "file_id"])
    # What a customer's message said before it was changed.
    op.create_table(
        "helpdesk_entry_edits",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("entry_id", Id, primary_key=True),
        sa.Column("edit", sa.Integer, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("replaced_at_ms", Ms, nullable=False),
        _of_entry(),
    )


def _index_where(name: str, columns: list[str], where: str) -> None:
    op.create_index(
        f"helpdesk_entries_{name}",
        "helpdesk_entries",
        columns,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )


def _blocklist() -> None:
    op.create_table(
        "helpdesk_blocklist",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        _of_subscriber(),
    )


def _canned_answers() -> None:
    op.create_table(
        "helpdesk_canned_answers",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("canned_answer_id", Id, nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        # Text by language and format, as JSON.
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
    )
    op.create_index(
        "helpdesk_canned_answers_id",
        "helpdesk_canned_answers",
        ["project_id", "canned_answer_id"],
        unique=True,
    )


def _agents() -> None:
    """What agents are shown of tickets in their messengers, by which an answer finds its ticket. It ends
    with the agent's subscriber, and with the ticket."""
    op.create_table(
        "helpdesk_agent_messages",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("note_id", Id, primary_key=True),
        sa.Column("ticket_id", Id, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("bot", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        # Null until the messenger has taken it.
        sa.Column("message_ref", sa.Text),
        sa.Column("kind", sa.Text, nullable=False),
        # What it is to look like.
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
    # What an agent's chat is about: the ticket that they opened last, and a text of which they are asked
    # where it is to go.
    op.create_table(
        "helpdesk_agent_chats",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("ticket_id", Id),
        sa.Column("draft_id", Id),
        sa.Column("draft", sa.Text),
        _of_subscriber(),
    )
    # Those of agents that are not here yet.
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


def _ratings() -> None:
    """Ratings that wait for a comment."""
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


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


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


def _of_entry() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "entry_id"],
        ["helpdesk_entries.project_id", "helpdesk_entries.entry_id"],
        ondelete="CASCADE",
    )
