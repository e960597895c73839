"""Messages that expire, so that those that wait for a closed channel are found."""

import sqlalchemy as sa
from alembic import op

revision = "core_0029"
down_revision = "core_0028"
phase = "expand"
transactional = False


def upgrade() -> None:
    # Few have a time, and each leaves the index when it is sent.
    op.create_index(
        "core_messages_expiry",
        "core_messages",
        ["expires_at_ms"],
        if_not_exists=True,
        sqlite_where=sa.text("status = 'queued' AND expires_at_ms IS NOT NULL"),
        postgresql_where=sa.text("status = 'queued' AND expires_at_ms IS NOT NULL"),
        postgresql_concurrently=True,
    )
