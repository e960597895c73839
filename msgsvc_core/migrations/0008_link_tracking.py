"""Whether links in a project's broadcasts are tracked."""

import sqlalchemy as sa
from alembic import op

revision = "core_0008"
down_revision = "core_0007"
phase = "expand"


def upgrade() -> None:
    op.add_column(
        "core_projects",
        sa.Column("link_tracking", sa.Boolean, nullable=False, server_default=sa.false()),
    )
