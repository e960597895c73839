"""Tracked links of broadcasts, and who opened which."""

import sqlalchemy as sa
from alembic import op

revision = "broadcasts_0003"
down_revision = "broadcasts_0002"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "broadcasts_links",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("link_id", Id, primary_key=True),
        # Its place in the message, from 0.
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
    )
    # An address that a recipient opens names no project.
    op.create_index("broadcasts_links_id", "broadcasts_links", ["link_id"], unique=True)
    # Once for each person and link, however often it is opened.
    op.create_table(
        "broadcasts_link_clicks",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("job_id", Id, primary_key=True),
        sa.Column("link_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("clicked_at_ms", Ms, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "broadcasts_link_clicks_subscriber",
        "broadcasts_link_clicks",
        ["project_id", "subscriber_id"],
    )
    op.create_index("broadcasts_link_clicks_time", "broadcasts_link_clicks", ["clicked_at_ms"])
