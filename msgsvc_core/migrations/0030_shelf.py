"""Items that a channel could not read, as they arrived and encrypted."""

import sqlalchemy as sa
from alembic import op

revision = "core_0030"
down_revision = "core_0029"
phase = "expand"

Ms = sa.BigInteger

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "core_shelf",
        sa.Column("item_id", Id, primary_key=True),
        # The key of the channel: no reference, as those of the configuration have no row.
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("update_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        # Null where the item does not tell whose it is.
        sa.Column("user_id", sa.Text),
        # Bytes of the item, and of what is kept of it.
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("kept", sa.BigInteger, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("received_at_ms", Ms, nullable=False),
        # When somebody had it taken anyway, in vain.
        sa.Column("tried_at_ms", Ms),
    )
    op.create_index("core_shelf_channel", "core_shelf", ["channel", "item_id"])
    op.create_index("core_shelf_update", "core_shelf", ["channel", "update_id"], unique=True)
    op.create_index("core_shelf_age", "core_shelf", ["received_at_ms"])
