"""Since when a webhook fails, why it was disabled, and its deliveries by event, for replays.

Times are Unix milliseconds.
"""

import sqlalchemy as sa
from alembic import op

revision = "webhooks_0002"
down_revision = "webhooks_0001"


def upgrade() -> None:
    op.add_column("webhooks_endpoints", sa.Column("failing_since_ms", sa.BigInteger))
    op.add_column("webhooks_endpoints", sa.Column("disabled_reason", sa.Text))
    op.create_index(
        "webhooks_deliveries_event",
        "webhooks_deliveries",
        ["project_id", "webhook_id", "event_id"],
    )
