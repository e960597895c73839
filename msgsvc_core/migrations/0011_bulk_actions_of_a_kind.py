"""Bulk actions in the order of the list of their kind."""

from alembic import op

revision = "core_0011"
down_revision = "core_0010"
phase = "expand"
transactional = False


def upgrade() -> None:
    op.create_index(
        "core_bulk_actions_kind",
        "core_bulk_actions",
        ["project_id", "kind", "bulk_action_id"],
        if_not_exists=True,
        postgresql_concurrently=True,
    )
