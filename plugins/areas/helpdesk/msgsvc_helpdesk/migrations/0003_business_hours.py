"""Business hours of desks."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0003"
down_revision = "helpdesk_0002"
phase = "expand"


def upgrade() -> None:
    # As JSON; null while the project has none.
    op.add_column("helpdesk_desks", sa.Column("hours", sa.Text))
