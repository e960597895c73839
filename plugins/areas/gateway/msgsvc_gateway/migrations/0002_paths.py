"""Where generic senders have their fields."""

import sqlalchemy as sa
from alembic import op

revision = "gateway_0002"
down_revision = "gateway_0001"
phase = "expand"


def upgrade() -> None:
    # A JSON object of paths by field.
    op.add_column(
        "gateway_gateways", sa.Column("paths", sa.Text, nullable=False, server_default="{}")
    )
