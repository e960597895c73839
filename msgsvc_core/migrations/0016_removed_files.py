"""An index of the files that were removed, whose content is removed after them, a few at a time."""

import sqlalchemy as sa
from alembic import op

revision = "core_0016"
down_revision = "core_0015"

_INDEX = "core_files_removed"
_TABLE = "core_files"


def upgrade() -> None:
    removed = sa.text("status = 'removed'")
    op.create_index(_INDEX, _TABLE, ["file_id"], sqlite_where=removed, postgresql_where=removed)
