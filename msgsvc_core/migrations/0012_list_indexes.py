"""Indexes by which lists find what few entries have, in the list's own order.

Messages are written on every send, so theirs are few. What becomes of most, `sent`, is in none: each
message would be written there twice more. On SQLite, which writes whole pages, a subscriber's messages are
in two: those under way in one that stays small, and those that have ended, written once when they end.
See docs/decisions/0044-lists-of-a-million.md.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0012"
down_revision = "core_0011"

#: Name, table, columns, and which rows are in it.
INDEXES = [
    ("core_messages_status", "core_messages", "status message_id", "status <> 'sent'"),
    ("core_messages_channel", "core_messages", "channel message_id", None),
    ("core_events_name", "core_events", "name event_id", None),
    ("core_subscribers_channel", "core_subscribers", "channel subscriber_id", None),
    ("core_subscribers_status", "core_subscribers", "status subscriber_id", None),
    ("core_subscribers_lang", "core_subscribers", "lang subscriber_id", None),
    ("core_templates_newest", "core_templates", "template_id", None),
    ("core_members_status", "core_members", "status member_id", None),
    ("core_mailings_source", "core_mailings", "source job_id", None),
    ("core_mailings_status", "core_mailings", "source status job_id", None),
]

#: Those of all projects, for operators.
OF_ALL = [
    ("core_mailings_all", "core_mailings", None),
    ("core_mailings_open", "core_mailings", "finished_at_ms IS NULL"),
    ("core_jobs_letters", "core_jobs", "state = 'dead'"),
]

#: A subscriber's messages on SQLite; PostgreSQL has had `core_messages_subscriber` from the first.
ON_SQLITE = [
    ("core_messages_under_way", "finished_at_ms IS NULL"),
    ("core_messages_ended", "finished_at_ms IS NOT NULL"),
]


def upgrade() -> None:
    for name, table, columns, where in INDEXES:
        _create(name, table, ["project_id", *columns.split()], where)
    for name, table, where in OF_ALL:
        _create(name, table, ["job_id"], where)
    if op.get_context().dialect.name == "sqlite":
        for name, where in ON_SQLITE:
            _create(name, "core_messages", ["project_id", "subscriber_id", "message_id"], where)


def _create(name: str, table: str, columns: list[str], where: str | None) -> None:
    rows = None if where is None else sa.text(where)
    op.create_index(name, table, columns, sqlite_where=rows, postgresql_where=rows)
