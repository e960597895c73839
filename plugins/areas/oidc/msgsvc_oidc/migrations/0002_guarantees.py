"""What a client's people have to prove, and what they proved."""

import sqlalchemy as sa
from alembic import op

revision = "oidc_0002"
down_revision = "oidc_0001"
phase = "expand"


def upgrade() -> None:
    # JSON; an empty list is anything.
    op.add_column(
        "oidc_clients", sa.Column("must_prove", sa.Text, nullable=False, server_default="[]")
    )
    # Null for what was confirmed before this column: nobody knows what it proved. Of a device's request also
    # until a person has approved it.
    for table in ("oidc_sessions", "oidc_grants", "oidc_device_requests"):
        op.add_column(table, sa.Column("proves", sa.Text))
