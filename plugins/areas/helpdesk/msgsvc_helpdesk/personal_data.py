"""What of the tables of tickets is personal data."""

from msgsvc_core.db.personal_data import NotExported, PersonalTable

_TICKETS = (
    "SELECT c.ticket_id FROM helpdesk_tickets c WHERE c.project_id = :project_id"
    " AND c.subscriber_id = :subscriber_id"
)
_ENTRIES = (
    "SELECT e.entry_id FROM helpdesk_entries e WHERE e.project_id = :project_id"
    f" AND e.ticket_id IN ({_TICKETS})"
)

PERSONAL_DATA = (
    PersonalTable(
        section="tickets",
        table="helpdesk_tickets",
        columns=(
            *("ticket_id", "number", "channel", "customer_name", "customer_email", "subject"),
            *("status", "priority", "source", "csat_score", "csat_comment", "created_at_ms"),
            *("closed_at_ms", "csat_at_ms"),
        ),
        order=("ticket_id",),
    ),
    PersonalTable(
        section="ticket_entries",
        table="helpdesk_entries",
        columns=(
            *("entry_id", "ticket_id", "author", "internal", "text", "media"),
            *("created_at_ms", "edited_at_ms"),
        ),
        json=("media",),
        where=f"t.project_id = :project_id AND t.ticket_id IN ({_TICKETS})",
        order=("entry_id",),
    ),
    PersonalTable(
        section="ticket_entry_edits",
        table="helpdesk_entry_edits",
        columns=("entry_id", "edit", "text", "replaced_at_ms"),
        where=f"t.project_id = :project_id AND t.entry_id IN ({_ENTRIES})",
        order=("entry_id", "edit"),
    ),
    PersonalTable(
        section="ticket_files",
        table="helpdesk_entry_files",
        columns=("entry_id", "file_id"),
        where=f"t.project_id = :project_id AND t.entry_id IN ({_ENTRIES})",
        order=("entry_id", "file_id"),
    ),
    PersonalTable(
        section="ticket_blocklist",
        table="helpdesk_blocklist",
        columns=("reason", "created_at_ms"),
    ),
    PersonalTable(
        section="agent_drafts",
        table="helpdesk_agent_chats",
        columns=("ticket_id", "draft"),
    ),
    PersonalTable(
        section="agent_files",
        table="helpdesk_agent_files",
        columns=("file_id", "ticket_id", "text"),
    ),
    NotExported("helpdesk_agent_messages", "copies of tickets of others, shown to an agent"),
    NotExported("helpdesk_threads", "which thread of a chat belongs to which ticket"),
    NotExported("helpdesk_ratings", "where a rating is asked for; the rating is in the ticket"),
)
