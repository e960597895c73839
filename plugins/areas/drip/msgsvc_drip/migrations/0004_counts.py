"""How many are at each step of a chain is counted by an index."""

import sqlalchemy as sa
from alembic import op

revision = "drip_0004"
down_revision = "drip_0003"


def upgrade() -> None:
    is_open = sa.text("finished_at_ms IS NULL")
    op.create_index(
        "drip_enrollments_at",
        "drip_enrollments",
        ["project_id", "drip_id", "version", "next_step"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
