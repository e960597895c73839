"""Records by kind and status, in the order of their lists."""

from alembic import op

revision = "scheduling_0002"
down_revision = "scheduling_0001"


def upgrade() -> None:
    of_kind = ["project_id", "kind"]
    op.create_index("scheduling_records_kind", "scheduling_records", [*of_kind, "record_id"])
    op.create_index(
        "scheduling_records_status", "scheduling_records", [*of_kind, "status", "record_id"]
    )
