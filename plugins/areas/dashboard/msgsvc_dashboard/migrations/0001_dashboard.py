"""How often what happened in a project on a day: what the charts of the overview show.

`day` counts days since 1970, in UTC. A row is one writer's share of a day's count: writers at the same time
have rows of their own, and so never wait for each other; days that are over are folded into share 0.
"""

import sqlalchemy as sa
from alembic import op

revision = "dashboard_0001"
down_revision = None

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "dashboard_counts",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("event", Id, primary_key=True),
        sa.Column("share", sa.Integer, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
    )
    op.create_index("dashboard_counts_day", "dashboard_counts", ["day"])
