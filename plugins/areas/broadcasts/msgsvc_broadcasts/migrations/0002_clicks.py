"""Who pressed which button of a broadcast."""

import sqlalchemy as sa
from alembic import op

revision = "broadcasts_0002"
down_revision = "broadcasts_0001"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    # Once for each person and button, however often it is pressed.
    op.create_table(
        "broadcasts_clicks",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("data", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("clicked_at_ms", Ms, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "broadcasts_clicks_subscriber", "broadcasts_clicks", ["project_id", "subscriber_id"]
    )
    op.create_index("broadcasts_clicks_time", "broadcasts_clicks", ["clicked_at_ms"])
