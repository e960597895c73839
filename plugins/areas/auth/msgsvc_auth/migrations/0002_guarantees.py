"""What a sign-in has to prove, and what it proved."""

import sqlalchemy as sa
from alembic import op

revision = "auth_0002"
down_revision = "auth_0001"
phase = "expand"


def upgrade() -> None:
    for table in ("auth_sessions", "auth_links", "auth_requests"):
        # Words with spaces between; empty for anything.
        op.add_column(table, sa.Column("must_prove", sa.Text, nullable=False, server_default=""))
    # Null until it is confirmed, and for what was confirmed before this column.
    op.add_column("auth_sessions", sa.Column("proves", sa.Text))
