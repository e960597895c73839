"""Indexes that hold only jobs of one state, and the runners there are.

A job waits, runs and is gone, and each of the three used to be written to indexes over all states.
`core_jobs_ready` alone tells what a lane has to do next and, by its first columns, which lanes there
are: neither takes a look at the jobs themselves.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0002"
down_revision = "core_0001"

Ms = sa.BigInteger


def upgrade() -> None:
    _index("core_jobs_ready", ["lane", "priority", "run_at_ms", "job_id"], "ready")
    _index("core_jobs_running", ["lane", "leased_until_ms"], "running")
    _index("core_jobs_dead", ["name", "job_id"], "dead")
    op.drop_index("core_jobs_due", "core_jobs")
    op.drop_index("core_jobs_lease", "core_jobs")
    op.create_table(
        "core_runners",
        sa.Column("runner_id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("leased_until_ms", Ms, nullable=False),
    )


def _index(name: str, columns: list[str], state: str) -> None:
    where = sa.text(f"state = '{state}'")
    op.create_index(name, "core_jobs", columns, sqlite_where=where, postgresql_where=where)
