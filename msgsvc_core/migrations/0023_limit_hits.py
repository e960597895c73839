"""Hits of limits that hold over restarts and processes: numbered without gaps for each key.

`key` is the hash of the limit's key and its window; times are Unix milliseconds.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0023"
down_revision = "core_0022"


def upgrade() -> None:
    op.create_table(
        "core_limit_hits",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("core_limit_hits_age", "core_limit_hits", ["expires_at_ms"])
