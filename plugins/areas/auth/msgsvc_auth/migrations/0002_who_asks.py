"""Who asked for a sign-in, the number to match, and sign-ins of the hosted page.

Times are Unix milliseconds.
"""

import sqlalchemy as sa
from alembic import op

revision = "auth_0002"
down_revision = "auth_0001"


def upgrade() -> None:
    op.add_column("auth_sessions", sa.Column("client_ip", sa.Text))
    op.add_column("auth_sessions", sa.Column("client_agent", sa.Text))
    op.add_column("auth_sessions", sa.Column("match_number", sa.Integer))
    # Of the secret that the browser of the hosted page keeps in a cookie.
    op.add_column("auth_sessions", sa.Column("browser_digest", sa.Text))
    op.create_index("auth_sessions_browser", "auth_sessions", ["browser_digest"], unique=True)
    op.add_column(
        "auth_links",
        sa.Column("number_matching", sa.Boolean, nullable=False, server_default=sa.false()),
    )
