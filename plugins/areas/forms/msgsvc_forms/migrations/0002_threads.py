"""The thread of the chat in which a conversation goes on, where a messenger has threads."""

import sqlalchemy as sa
from alembic import op

revision = "forms_0002"
down_revision = "forms_0001"
phase = "expand"


def upgrade() -> None:
    # NULL for the chat itself.
    op.add_column("forms_dialogues", sa.Column("thread", sa.Text))
