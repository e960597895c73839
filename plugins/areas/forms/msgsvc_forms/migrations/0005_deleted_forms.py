"""A form that was deleted is out of sight at once, and what was sent in with it goes a part at a time."""

import sqlalchemy as sa
from alembic import op

revision = "forms_0005"
down_revision = "forms_0004"

_TABLE = "forms_forms"


def upgrade() -> None:
    op.add_column(_TABLE, sa.Column("deleted_at_ms", sa.BigInteger))
