"""Routes: channels in the order in which a person is tried on them."""

import sqlalchemy as sa
from alembic import op

revision = "core_0012"
down_revision = "core_0011"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "core_routes",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("route_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        # JSON, in their order.
        sa.Column("steps", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("project_id", "name"),
    )
