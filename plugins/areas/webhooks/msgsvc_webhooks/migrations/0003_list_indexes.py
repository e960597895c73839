"""The journal by event, and by status but for `delivered`, which is what becomes of most."""

import sqlalchemy as sa
from alembic import op

revision = "webhooks_0003"
down_revision = "webhooks_0002"

_TABLE = "webhooks_deliveries"


def upgrade() -> None:
    of_webhook = ["project_id", "webhook_id"]
    others = sa.text("status <> 'delivered'")
    op.create_index(
        "webhooks_deliveries_status",
        _TABLE,
        [*of_webhook, "status", "delivery_id"],
        sqlite_where=others,
        postgresql_where=others,
    )
    op.create_index("webhooks_deliveries_name", _TABLE, [*of_webhook, "event", "delivery_id"])
