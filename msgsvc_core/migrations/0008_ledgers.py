"""Ledgers of mailings: looked up by what became of people, kept for a while, and paid for.

`core_recipients_told` holds those alone who did not get a mailing, and who are asked for; a row that
becomes `sent` is not in it. `refused_from_ms` is since when a platform asks to wait with a recipient.

`core_mailings.charged` is how many recipients were paid for at the call; null for those of before.
`purged_at_ms` is when its ledger was removed.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0008"
down_revision = "core_0007"

Ms = sa.BigInteger


def upgrade() -> None:
    op.add_column("core_mailings", sa.Column("charged", sa.Integer))
    op.add_column("core_mailings", sa.Column("purged_at_ms", Ms))
    op.add_column("core_recipients", sa.Column("refused_from_ms", Ms))
    _index(
        "core_recipients_told",
        "core_recipients",
        ["project_id", "job_id", "status", "subscriber_id"],
        "status IN ('failed', 'skipped', 'unknown')",
    )
    _index(
        "core_mailings_ended",
        "core_mailings",
        ["finished_at_ms"],
        "finished_at_ms IS NOT NULL AND purged_at_ms IS NULL",
    )


def _index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
