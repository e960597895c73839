"""Claims in ID tokens, and clients that introspect tokens of others."""

import sqlalchemy as sa
from alembic import op

revision = "oidc_0003"
down_revision = "oidc_0002"
phase = "expand"


def upgrade() -> None:
    op.add_column(
        "oidc_clients",
        sa.Column("claims_in_id_token", sa.Boolean, nullable=False, server_default=sa.true()),
    )
    # JSON: ids of clients.
    op.add_column(
        "oidc_clients", sa.Column("introspects", sa.Text, nullable=False, server_default="[]")
    )
