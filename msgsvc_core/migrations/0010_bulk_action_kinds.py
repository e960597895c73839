"""Bulk actions of other things than subscribers."""

import sqlalchemy as sa
from alembic import op

revision = "core_0010"
down_revision = "core_0009"
phase = "expand"


def upgrade() -> None:
    op.add_column(
        "core_bulk_actions",
        sa.Column("kind", sa.Text, nullable=False, server_default="subscribers"),
    )
