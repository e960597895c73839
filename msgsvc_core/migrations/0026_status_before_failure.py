"""What a person who seemed unreachable becomes again when they write."""

import sqlalchemy as sa
from alembic import op

revision = "core_0026"
down_revision = "core_0025"
phase = "expand"


def upgrade() -> None:
    # Null for those whom no failure has blocked, and for those of earlier releases.
    op.add_column("core_subscribers", sa.Column("status_before_failure", sa.Text))
