"""What a bot offers in words where its platform has no buttons, and codes to start it by.

`core_offers` has the newest question of a chat, encrypted; `core_start_codes` what a short code stands
for, by the code's keyed hash.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0020"
down_revision = "core_0019"


def upgrade() -> None:
    op.create_table(
        "core_offers",
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("chat_id", sa.Text, primary_key=True),
        sa.Column("offer_id", sa.Text, nullable=False),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("message_ref", sa.Text),
        sa.Column("asked_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("core_offers_age", "core_offers", ["asked_at_ms"])
    op.create_table(
        "core_start_codes",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_index("core_start_codes_age", "core_start_codes", ["expires_at_ms"])
