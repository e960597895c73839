"""The trace that a job and a message belong to, null without one."""

import sqlalchemy as sa
from alembic import op

revision = "core_0002"
down_revision = "core_0001"
phase = "expand"


def upgrade() -> None:
    op.add_column("core_jobs", sa.Column("traceparent", sa.Text))
    op.add_column("core_messages", sa.Column("trace_id", sa.Text))
