"""What happened with one subscriber, and which messages failed for one reason, by an index each.

`core_events.history_of` is the subscriber in whose history an event stands. Events of deliveries stand in
nobody's, their messages do; the index leaves them out, and so is written by none of what is sent. The
other one has what was not delivered.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0014"
down_revision = "core_0013"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

#: Who an event is of, in what `to_json` wrote.
_WHO = {
    "postgresql": r"""substring(data from '"subscriber_id":"(sub_[0-9A-Za-z]+)"')""",
    "sqlite": "json_extract(data, '$.subscriber_id')",
}


def upgrade() -> None:
    op.add_column("core_events", sa.Column("history_of", Id))
    who = _WHO[op.get_bind().dialect.name].replace(":", r"\:")
    op.execute(
        f"UPDATE core_events SET history_of = {who}"
        " WHERE name NOT IN ('delivery.success', 'delivery.failed')"
    )
    in_one = sa.text("history_of IS NOT NULL")
    op.create_index(
        "core_events_history",
        "core_events",
        ["project_id", "history_of", "event_id"],
        sqlite_where=in_one,
        postgresql_where=in_one,
    )
    failed = sa.text("reason IS NOT NULL")
    op.create_index(
        "core_messages_reason",
        "core_messages",
        ["project_id", "reason", "message_id"],
        sqlite_where=failed,
        postgresql_where=failed,
    )
