"""Signed data of mini apps that has signed somebody in, kept until it is too old to be taken.

Times are Unix milliseconds.
"""

import sqlalchemy as sa
from alembic import op

revision = "auth_0003"
down_revision = "auth_0002"


def upgrade() -> None:
    op.create_table(
        "auth_mini_app_uses",
        sa.Column("data_digest", sa.Text, primary_key=True),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("auth_mini_app_uses_expiry", "auth_mini_app_uses", ["expires_at_ms"])
