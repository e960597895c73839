"""Updates on the shelf that a channel could read, and whose handler failed."""

import sqlalchemy as sa
from alembic import op

revision = "core_0031"
down_revision = "core_0030"
phase = "expand"


def upgrade() -> None:
    # The kind of the update, e.g. `MessageReceived`; null for an item that the channel could not read.
    op.add_column("core_shelf", sa.Column("update_kind", sa.Text))
