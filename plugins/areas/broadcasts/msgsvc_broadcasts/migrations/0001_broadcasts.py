"""To whom each member sends tests of what they write."""

import sqlalchemy as sa
from alembic import op

revision = "broadcasts_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "broadcasts_testers",
        sa.Column("project_id", Id, primary_key=True),
        # A member; or the account of an owner who is none yet.
        sa.Column("viewer_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "broadcasts_testers_subscriber", "broadcasts_testers", ["project_id", "subscriber_id"]
    )
