"""Since when a channel's platform has not answered, and how it is probed; null while it answers."""

import sqlalchemy as sa
from alembic import op

revision = "core_0019"
down_revision = "core_0018"


def upgrade() -> None:
    op.add_column("core_channel_states", sa.Column("outage_since_ms", sa.BigInteger))
    op.add_column("core_channel_states", sa.Column("outage_detail", sa.Text))
    op.add_column(
        "core_channel_states",
        sa.Column("outage_probes", sa.Integer, nullable=False, server_default="0"),
    )
    op.add_column(
        "core_channel_states",
        sa.Column("outage_trial", sa.Integer, nullable=False, server_default="0"),
    )
    op.add_column("core_channel_states", sa.Column("outage_probe_at_ms", sa.BigInteger))
