"""Since when a platform has asked to wait with what a job is to do; null while it has not."""

import sqlalchemy as sa
from alembic import op

revision = "core_0017"
down_revision = "core_0016"


def upgrade() -> None:
    op.add_column("core_jobs", sa.Column("refused_from_ms", sa.BigInteger))
