"""Since when a bot receives nothing, and why; null while it receives."""

import sqlalchemy as sa
from alembic import op

revision = "core_0025"
down_revision = "core_0023"


def upgrade() -> None:
    op.add_column("core_channel_states", sa.Column("interrupted_since_ms", sa.BigInteger))
    op.add_column("core_channel_states", sa.Column("interrupted_reason", sa.Text))
    op.add_column("core_channel_states", sa.Column("interrupted_detail", sa.Text))
