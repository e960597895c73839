"""How much of a submission's files the web sent, so that strangers can't fill the disk."""

import sqlalchemy as sa
from alembic import op

revision = "forms_0004"
down_revision = "forms_0003"

_TABLE = "forms_submissions"
_INDEX = "forms_submissions_files"


def upgrade() -> None:
    op.add_column(
        _TABLE, sa.Column("file_bytes", sa.BigInteger, nullable=False, server_default="0")
    )
    where = sa.text("file_bytes > 0")
    op.create_index(
        _INDEX,
        _TABLE,
        ["project_id", "created_at_ms"],
        sqlite_where=where,
        postgresql_where=where,
    )
