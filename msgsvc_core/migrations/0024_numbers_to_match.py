"""The number that a browser shows while it waits for a messenger, and that is to be picked there.

Requests without one are begun anew; they last ten minutes.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0024"
down_revision = "core_0023"

_TABLE = "core_account_requests"


def upgrade() -> None:
    op.execute(f"DELETE FROM {_TABLE}")
    op.add_column(_TABLE, sa.Column("number", sa.Integer, nullable=False, server_default="0"))
