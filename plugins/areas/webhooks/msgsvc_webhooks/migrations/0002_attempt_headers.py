"""The headers of an attempt, of its request and of its response: JSON, null without any."""

import sqlalchemy as sa
from alembic import op

revision = "webhooks_0002"
down_revision = "webhooks_0001"
phase = "expand"


def upgrade() -> None:
    for name in ("request_headers", "response_headers"):
        op.add_column("webhooks_attempts", sa.Column(name, sa.Text))
