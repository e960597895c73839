"""How many deliveries have failed since a webhook fails, those shortly after one another as one.

Times are Unix milliseconds.
"""

import sqlalchemy as sa
from alembic import op

revision = "webhooks_0004"
down_revision = "webhooks_0003"


def upgrade() -> None:
    op.add_column(
        "webhooks_endpoints",
        sa.Column("failed_deliveries", sa.Integer, nullable=False, server_default="0"),
    )
    op.add_column("webhooks_endpoints", sa.Column("failed_delivery_at_ms", sa.BigInteger))
