"""The language tags in use, for the job that maps them to languages of texts."""

import sqlalchemy as sa
from alembic import op

revision = "core_0025"
down_revision = "core_0024"
phase = "expand"
transactional = False


def upgrade() -> None:
    op.create_index(
        "core_subscribers_locale",
        "core_subscribers",
        ["locale", "lang"],
        if_not_exists=True,
        sqlite_where=sa.text("locale IS NOT NULL"),
        postgresql_where=sa.text("locale IS NOT NULL"),
        postgresql_concurrently=True,
    )
