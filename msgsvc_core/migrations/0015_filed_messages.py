"""On SQLite messages are entered into the index by subscriber many at a time, and no longer one by one.

Each message touched another page of it, when it was taken in and again when it ended; that was a sixth of
what `POST /v1/send` took, and a third of a delivery. What is not entered yet is in an index of its own, in
the order in which it came. See docs/decisions/0049-filing-messages.md.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0015"
down_revision = "core_0014"

OF_ONE = ["project_id", "subscriber_id", "message_id"]

#: Until now: the messages under way, and those that have ended.
BEFORE = [
    ("core_messages_under_way", OF_ONE, "finished_at_ms IS NULL"),
    ("core_messages_ended", OF_ONE, "finished_at_ms IS NOT NULL"),
]

NOW = [
    ("core_messages_filed", OF_ONE, "filed = 1"),
    ("core_messages_unfiled", ["project_id", "message_id", "subscriber_id"], "filed IS NULL"),
]


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        _drop(BEFORE)
        op.add_column("core_messages", sa.Column("filed", sa.SmallInteger))
        op.execute("UPDATE core_messages SET filed = 1")
        _create(NOW)


def _create(indexes: list[tuple[str, list[str], str]]) -> None:
    for name, columns, where in indexes:
        op.create_index(name, "core_messages", columns, sqlite_where=sa.text(where))


def _drop(indexes: list[tuple[str, list[str], str]]) -> None:
    for name, _, _ in indexes:
        op.drop_index(name, "core_messages")
