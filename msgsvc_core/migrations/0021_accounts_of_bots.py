"""Whom a bot's token belongs to, as its platform says; null while it has not said."""

import sqlalchemy as sa
from alembic import op

revision = "core_0021"
down_revision = "core_0020"


def upgrade() -> None:
    op.add_column("core_bots", sa.Column("account", sa.Text))
