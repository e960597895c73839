"""Counts of events by hour, from which the overview has its last day.

New counts are of hours; those of days that are over become `dashboard_counts` later. Processes of the
release before still write `dashboard_counts`, and read no hours.
"""

import sqlalchemy as sa
from alembic import op

revision = "dashboard_0002"
down_revision = "dashboard_0001"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "dashboard_hours",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        # Hours since 1970.
        sa.Column("hour", sa.Integer, primary_key=True),
        sa.Column("event", Id, primary_key=True),
        # The database connection that counted, as in `dashboard_counts`.
        sa.Column("share", sa.Integer, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
    )
    op.create_index("dashboard_hours_hour", "dashboard_hours", ["hour"])
