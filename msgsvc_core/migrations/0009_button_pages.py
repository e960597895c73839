"""Pages on which a button is pressed, where a platform has only links."""

import sqlalchemy as sa
from alembic import op

revision = "core_0009"
down_revision = "core_0008"
phase = "expand"


def upgrade() -> None:
    # A message's buttons, by the keyed hash of the token in their URLs.
    op.create_table(
        "core_button_pages",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("message_ref", sa.Text),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("shown_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("core_button_pages_chat", "core_button_pages", ["channel", "chat_id"])
    op.create_index("core_button_pages_age", "core_button_pages", ["shown_at_ms"])
