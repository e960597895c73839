"""Which secret keys each running process knows, so that nothing is re-encrypted under one that it can't
read."""

import sqlalchemy as sa
from alembic import op

revision = "core_0028"
down_revision = "core_0027"
phase = "expand"


def upgrade() -> None:
    # Null for processes of earlier releases.
    op.add_column("core_runners", sa.Column("key_ids", sa.Text))
