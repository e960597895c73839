"""How many targets of service levels were met and missed, by day."""

import sqlalchemy as sa
from alembic import op

revision = "helpdesk_0006"
down_revision = "helpdesk_0005"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

TARGETS = ("first_reply", "next_reply", "resolution")


def upgrade() -> None:
    # A row for all targets of a day: two transactions that end several of them lock it once.
    op.create_table(
        "helpdesk_sla_days",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        # Days since 1970 in UTC.
        sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
        *(
            sa.Column(f"{target}_{outcome}", sa.Integer, nullable=False, server_default="0")
            for target in TARGETS
            for outcome in ("met", "missed")
        ),
    )
