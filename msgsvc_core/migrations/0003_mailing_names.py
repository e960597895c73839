"""What the sender calls a mailing, null without a name."""

import sqlalchemy as sa
from alembic import op

revision = "core_0003"
down_revision = "core_0002"
phase = "expand"


def upgrade() -> None:
    op.add_column("core_mailings", sa.Column("name", sa.Text))
