"""When platforms reported that messages arrived, and that they were read."""

import sqlalchemy as sa
from alembic import op

revision = "core_0014"
down_revision = "core_0013"
phase = "expand"


def upgrade() -> None:
    op.add_column("core_messages", sa.Column("delivered_at_ms", sa.BigInteger))
    op.add_column("core_messages", sa.Column("read_at_ms", sa.BigInteger))
