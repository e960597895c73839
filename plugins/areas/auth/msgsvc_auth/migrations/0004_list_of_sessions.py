"""The newest sign-ins of a project, for the dashboard."""

from alembic import op

revision = "auth_0004"
down_revision = "auth_0003"


def upgrade() -> None:
    op.create_index(
        "auth_sessions_newest", "auth_sessions", ["project_id", "created_at_ms", "session_id"]
    )
