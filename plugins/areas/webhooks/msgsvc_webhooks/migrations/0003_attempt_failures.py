"""Why an attempt failed, as a text's id with its parameters: JSON, null without any."""

import sqlalchemy as sa
from alembic import op

revision = "webhooks_0003"
down_revision = "webhooks_0002"
phase = "expand"


def upgrade() -> None:
    op.add_column("webhooks_attempts", sa.Column("failure", sa.Text))
