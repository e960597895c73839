"""How many outcomes of a mailing, and of a batch, are unknown; `failed` holds them too."""

import sqlalchemy as sa
from alembic import op

revision = "core_0018"
down_revision = "core_0017"

#: Where they can still be counted; both are read by the indexes of what was not sent.
_IN_RECIPIENTS = (
    "SELECT project_id, job_id, COUNT(*) AS many FROM core_recipients"
    " WHERE status = 'unknown' AND status IN ('failed', 'skipped', 'unknown')"
    " GROUP BY project_id, job_id"
)
_IN_MESSAGES = (
    "SELECT project_id, batch_id, COUNT(*) AS many FROM core_messages"
    " WHERE status = 'unknown' AND status <> 'sent' AND batch_id IS NOT NULL"
    " GROUP BY project_id, batch_id"
)
_COUNTED = (
    ("core_mailings", "job_id", _IN_RECIPIENTS),
    ("core_batches", "batch_id", _IN_MESSAGES),
)


def upgrade() -> None:
    for table, key, counted in _COUNTED:
        op.add_column(table, sa.Column("unknown", sa.Integer, nullable=False, server_default="0"))
        op.execute(
            f"UPDATE {table} AS t SET unknown = found.many FROM ({counted}) AS found"
            f" WHERE t.project_id = found.project_id AND t.{key} = found.{key}"
        )
