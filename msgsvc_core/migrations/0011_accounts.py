"""Which account owns a project, and which one a member is.

Accounts are a plugin's; the core keeps their ids. A project without one belongs to the operator alone.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0011"
down_revision = "core_0010"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.add_column("core_projects", sa.Column("account_id", Id))
    op.create_index("core_projects_account", "core_projects", ["account_id", "project_id"])
    op.add_column("core_members", sa.Column("account_id", Id))
    is_active = sa.text("status = 'active' AND account_id IS NOT NULL")
    op.create_index(
        "core_members_account",
        "core_members",
        ["account_id", "project_id"],
        unique=True,
        sqlite_where=is_active,
        postgresql_where=is_active,
    )
