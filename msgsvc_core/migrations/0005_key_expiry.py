"""When an API key expires, null for never."""

import sqlalchemy as sa
from alembic import op

revision = "core_0005"
down_revision = "core_0004"
phase = "expand"


def upgrade() -> None:
    op.add_column("core_api_keys", sa.Column("expires_at_ms", sa.BigInteger))
