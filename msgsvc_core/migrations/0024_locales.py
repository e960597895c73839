"""The language tags that people have, as they were given."""

import sqlalchemy as sa
from alembic import op

revision = "core_0024"
down_revision = "core_0023"
phase = "expand"


def upgrade() -> None:
    # Null for people of earlier releases, which kept only the language of texts.
    op.add_column("core_subscribers", sa.Column("locale", sa.Text))
