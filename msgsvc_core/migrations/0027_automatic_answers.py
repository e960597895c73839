"""How often a bot has answered in a chat by itself, so that two programs don't answer each other for ever."""

import sqlalchemy as sa
from alembic import op

revision = "core_0027"
down_revision = "core_0026"
phase = "expand"


def upgrade() -> None:
    op.add_column("core_chats", sa.Column("automatic", sa.Text))
