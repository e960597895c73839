"""When a ticket's customer was last told that the desk is closed."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0007"
down_revision = "helpdesk_0006"
phase = "expand"


def upgrade() -> None:
    op.add_column("helpdesk_tickets", sa.Column("away_told_at_ms", sa.BigInteger))
