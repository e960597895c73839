"""What is written, and taken away again, to find out whether a full disk has room again."""

import sqlalchemy as sa
from alembic import op

revision = "core_0022"
down_revision = "core_0021"


def upgrade() -> None:
    op.create_table(
        "core_write_trials",
        sa.Column("trial_id", sa.Text, primary_key=True),
        sa.Column("filler", sa.Text, nullable=False),
    )
