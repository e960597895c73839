"""Indexes by which the audit log is filtered: by what entries are about, for everyone and for one person."""

import sqlalchemy as sa
from alembic import op

revision = "dashboard_0004"
down_revision = "dashboard_0003"
phase = "expand"
transactional = False

#: The first part of an action, e.g. `webhooks` of `webhooks.change_webhook`.
FIRST_PART = {
    "postgresql": "split_part(action, '.', 1)",
    "sqlite": "substr(action, 1, instr(action, '.') - 1)",
}


def upgrade() -> None:
    area = sa.text(FIRST_PART[op.get_context().dialect.name])
    for name, columns in (
        ("area", ["project_id", area, "entry_id"]),
        ("person_area", ["project_id", "account_id", area, "entry_id"]),
    ):
        op.create_index(
            f"dashboard_audit_{name}",
            "dashboard_audit",
            columns,
            if_not_exists=True,
            postgresql_concurrently=True,
        )
