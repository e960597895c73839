"""Enrollments by status and by subscriber, in the order of their list."""

from alembic import op

revision = "drip_0003"
down_revision = "drip_0002"

_TABLE = "drip_enrollments"
_OF_SUBSCRIBER = ["project_id", "subscriber_id", "drip_id"]


def upgrade() -> None:
    op.create_index(
        "drip_enrollments_status", _TABLE, ["project_id", "drip_id", "status", "enrollment_id"]
    )
    op.drop_index("drip_enrollments_subscriber", _TABLE)
    op.create_index("drip_enrollments_subscriber", _TABLE, [*_OF_SUBSCRIBER, "enrollment_id"])
