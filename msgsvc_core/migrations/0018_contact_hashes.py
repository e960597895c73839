"""Keyed hashes of verified contacts."""

import sqlalchemy as sa
from alembic import op

revision = "core_0018"
down_revision = "core_0016"
phase = "expand"


def upgrade() -> None:
    # Null until the hourly job has hashed a contact of an earlier release.
    op.add_column("core_subscriber_contacts", sa.Column("value_hash", sa.Text))
