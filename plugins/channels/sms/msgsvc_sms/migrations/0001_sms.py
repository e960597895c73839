"""The plugin's tables: what came in and is not read yet, and what was sent, by number, prefix and project.

Times are Unix milliseconds. `channel` is the key of a channel; numbers are keyed hashes.
"""

import sqlalchemy as sa
from alembic import op

revision = "sms_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "sms_inbox",
        sa.Column("channel", Id, primary_key=True),
        sa.Column("item_id", Id, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("received_at_ms", Ms, nullable=False),
    )
    op.create_index("sms_inbox_age", "sms_inbox", ["received_at_ms"])
    op.create_table(
        "sms_parts",
        sa.Column("channel", Id, primary_key=True),
        sa.Column("sender_hash", Id, primary_key=True),
        sa.Column("reference", sa.Integer, primary_key=True),
        sa.Column("total", sa.Integer, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("received_at_ms", Ms, nullable=False),
    )
    op.create_index("sms_parts_age", "sms_parts", ["received_at_ms"])
    op.create_table(
        "sms_numbers",
        sa.Column("channel", Id, primary_key=True),
        sa.Column("number_hash", Id, primary_key=True),
        sa.Column("sent_at_ms", Ms, nullable=False),
    )
    op.create_index("sms_numbers_age", "sms_numbers", ["sent_at_ms"])
    op.create_table(
        "sms_counters",
        sa.Column("channel", Id, primary_key=True),
        sa.Column("rule", Id, primary_key=True),
        sa.Column("subject", Id, primary_key=True),
        sa.Column("window_ends_at_ms", Ms, primary_key=True),
        sa.Column("used", sa.Integer, nullable=False),
    )
    op.create_index("sms_counters_age", "sms_counters", ["window_ends_at_ms"])
    op.create_table(
        "sms_blocks",
        sa.Column("channel", Id, primary_key=True),
        sa.Column("rule", Id, primary_key=True),
        sa.Column("subject", Id, primary_key=True),
        sa.Column("began_at_ms", Ms, nullable=False),
        sa.Column("ends_at_ms", Ms, nullable=False),
        sa.Column("refused", sa.Integer, nullable=False),
    )
    op.create_index("sms_blocks_age", "sms_blocks", ["ends_at_ms"])
