"""Under which key a bot sent a message: with the same key it is shown once."""

import sqlalchemy as sa
from alembic import op

revision = "sandbox_0003"
down_revision = "sandbox_0002"


def upgrade() -> None:
    op.add_column("sandbox_messages", sa.Column("send_key", sa.Text))
    op.create_index(
        "sandbox_messages_key",
        "sandbox_messages",
        ["person_id", "channel", "send_key"],
        unique=True,
        sqlite_where=sa.text("send_key IS NOT NULL"),
        postgresql_where=sa.text("send_key IS NOT NULL"),
    )
