"""Changes of many subscribers in the background."""

import sqlalchemy as sa
from alembic import op

revision = "core_0006"
down_revision = "core_0005"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "core_bulk_actions",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("bulk_action_id", Id, primary_key=True),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("tag_id", Id),
        # JSON, null if the subscribers were named.
        sa.Column("filters", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("collected_to", Id),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("finished_at_ms", sa.BigInteger),
    )
    op.create_index("core_bulk_actions_by_age", "core_bulk_actions", ["created_at_ms"])
    op.create_table(
        "core_bulk_targets",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("bulk_action_id", Id, primary_key=True),
        # The number of the first of them, from 0.
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        # JSON, up to 1,000.
        sa.Column("subscriber_ids", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "bulk_action_id"],
            ["core_bulk_actions.project_id", "core_bulk_actions.bulk_action_id"],
            ondelete="CASCADE",
        ),
    )
