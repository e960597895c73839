"""Pauses of a chain are kept with the chain, and the due times of its people in its own time.

The own time of a chain stands still while it is paused: it is the clock's, less all of its pauses. So a
pause changes no enrollment. Who was held by one until now gets back a due time, `left_ms` after the
moment at which the chain stands.
"""

import sqlalchemy as sa
from alembic import op

revision = "drip_0002"
down_revision = "drip_0001"

_OF_CHAIN = "c.project_id = drip_enrollments.project_id AND c.drip_id = drip_enrollments.drip_id"


def upgrade() -> None:
    # All pauses that have ended, together; and when the one began that has not.
    op.add_column(
        "drip_chains", sa.Column("paused_ms", sa.BigInteger, nullable=False, server_default="0")
    )
    op.add_column("drip_chains", sa.Column("paused_at_ms", sa.BigInteger))
    op.execute("UPDATE drip_chains SET paused_at_ms = updated_at_ms WHERE status = 'paused'")
    op.execute(
        "UPDATE drip_enrollments SET left_ms = NULL, due_at_ms = left_ms"
        f" + (SELECT c.updated_at_ms FROM drip_chains c WHERE {_OF_CHAIN})"
        " WHERE status = 'active' AND left_ms IS NOT NULL"
    )
    op.drop_index("drip_enrollments_due", "drip_enrollments")
    is_due = sa.text("due_at_ms IS NOT NULL")
    # What is due is looked for chain by chain, as each has a time of its own.
    op.create_index(
        "drip_enrollments_due",
        "drip_enrollments",
        ["project_id", "drip_id", "due_at_ms", "enrollment_id"],
        sqlite_where=is_due,
        postgresql_where=is_due,
    )
