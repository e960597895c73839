"""Verified contacts by their hashes, and those that have none yet."""

import sqlalchemy as sa
from alembic import op

revision = "core_0019"
down_revision = "core_0018"
phase = "expand"
transactional = False


def upgrade() -> None:
    op.create_index(
        "core_subscriber_contacts_hash",
        "core_subscriber_contacts",
        ["project_id", "kind", "value_hash"],
        if_not_exists=True,
        postgresql_concurrently=True,
    )
    op.create_index(
        "core_subscriber_contacts_unhashed",
        "core_subscriber_contacts",
        ["project_id", "subscriber_id", "kind"],
        if_not_exists=True,
        sqlite_where=sa.text("value_hash IS NULL"),
        postgresql_where=sa.text("value_hash IS NULL"),
        postgresql_concurrently=True,
    )
