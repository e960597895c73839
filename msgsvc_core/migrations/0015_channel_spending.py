"""What channels have spent of their budgets today."""

import sqlalchemy as sa
from alembic import op

revision = "core_0015"
down_revision = "core_0014"
phase = "expand"


def upgrade() -> None:
    op.create_table(
        "core_channel_spending",
        sa.Column("channel", sa.Text, primary_key=True),
        # Since 1970, in UTC.
        sa.Column("day", sa.BigInteger, nullable=False),
        sa.Column("spent", sa.BigInteger, nullable=False),
    )
