"""What a bot's platform has told us to keep to: wait until a moment, or make no call at all.

`channel` is the channel's key. A row is there once there was something to say.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0004"
down_revision = "core_0003"


def upgrade() -> None:
    op.create_table(
        "core_channel_states",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False, server_default="working"),
        sa.Column("reason", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("paused_until_ms", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
    )
