"""Tags get ids, and whoever carries one refers to that: another name is one row, however many carry it.

The ids of those that there are are their names of today, so what refers to them stays as it is, down to
the JSON of links.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0026"
down_revision = "core_0025"


def upgrade() -> None:
    # By hand: on SQLite, Alembic renames a column by copying the table, and the subscribers' one is large.
    op.execute("ALTER TABLE core_tags RENAME COLUMN name TO tag_id")
    op.execute("ALTER TABLE core_subscriber_tags RENAME COLUMN tag TO tag_id")
    op.execute("ALTER TABLE core_links RENAME COLUMN tags TO tag_ids")
    op.add_column("core_tags", sa.Column("name", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE core_tags SET name = tag_id")
    op.create_index("core_tags_name", "core_tags", ["project_id", "name"], unique=True)
