"""Saved views of lists, and the one with which somebody opens a list."""

import sqlalchemy as sa
from alembic import op

revision = "dashboard_0003"
down_revision = "dashboard_0002"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "dashboard_views",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("view_id", Id, primary_key=True),
        # The list, by its path in the project, and its filters as in its address.
        sa.Column("path", Id, nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("account_id", Id, _account(), nullable=False),
        # For all of the project; otherwise for its author alone.
        sa.Column("is_shared", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("dashboard_views_list", "dashboard_views", ["project_id", "path", "account_id"])
    op.create_index("dashboard_views_account", "dashboard_views", ["account_id"])
    op.create_table(
        "dashboard_default_views",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("account_id", Id, _account(), primary_key=True),
        sa.Column("path", Id, primary_key=True),
        sa.Column("view_id", Id, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "view_id"],
            ["dashboard_views.project_id", "dashboard_views.view_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "dashboard_default_views_view", "dashboard_default_views", ["project_id", "view_id"]
    )
    op.create_index("dashboard_default_views_account", "dashboard_default_views", ["account_id"])


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


def _account() -> sa.ForeignKey:
    return sa.ForeignKey("dashboard_accounts.account_id", ondelete="CASCADE")
