"""Why a logout token was not delivered, as a text's id with its parameters: JSON, null without any."""

import sqlalchemy as sa
from alembic import op

revision = "oidc_0004"
down_revision = "oidc_0003"
phase = "expand"


def upgrade() -> None:
    op.add_column("oidc_logout_deliveries", sa.Column("failure", sa.Text))
