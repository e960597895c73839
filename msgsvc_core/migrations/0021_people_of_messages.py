"""Whom a message by a route is for, as its request named them."""

import sqlalchemy as sa
from alembic import op

revision = "core_0021"
down_revision = "core_0020"
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    # Only of messages with a route. Later changes of the person's id don't reach it, but for merging.
    op.add_column("core_messages", sa.Column("external_id", Id))
