"""How projects look on their public pages."""

import sqlalchemy as sa
from alembic import op

revision = "core_0004"
down_revision = "core_0003"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    # JSON, null for the service's own look.
    op.add_column("core_projects", sa.Column("branding", sa.Text))
    op.create_table(
        "core_logos",
        sa.Column("logo_id", Id, primary_key=True),
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("media_type", sa.Text, nullable=False),
        # In base64.
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("core_logos_by_project", "core_logos", ["project_id"])
