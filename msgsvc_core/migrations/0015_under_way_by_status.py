"""On SQLite no index of messages by subscriber grows with what waits to be sent.

Each message that was taken in touched another page of `core_messages_under_way` once thousands waited: a
sixth of what `POST /v1/send` took. Those of one subscriber are found among all that are under way, whose
entries by status hold the subscriber now. See docs/decisions/0049-what-a-send-costs.md.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0015"
down_revision = "core_0014"

BY_STATUS = ["project_id", "status", "message_id"]


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.drop_index("core_messages_under_way", "core_messages")
        _by_status_anew([*BY_STATUS, "subscriber_id"])


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        _by_status_anew(BY_STATUS)
        op.create_index(
            "core_messages_under_way",
            "core_messages",
            ["project_id", "subscriber_id", "message_id"],
            sqlite_where=sa.text("finished_at_ms IS NULL"),
        )


def _by_status_anew(columns: list[str]) -> None:
    op.drop_index("core_messages_status", "core_messages")
    where = sa.text("status <> 'sent'")
    op.create_index("core_messages_status", "core_messages", columns, sqlite_where=where)
