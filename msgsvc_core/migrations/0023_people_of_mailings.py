"""The rows of a person in the ledger of a mailing with a route."""

import sqlalchemy as sa
from alembic import op

revision = "core_0023"
down_revision = "core_0022"
phase = "expand"
transactional = False


def upgrade() -> None:
    op.create_index(
        "core_recipients_person",
        "core_recipients",
        ["project_id", "job_id", "person"],
        if_not_exists=True,
        sqlite_where=sa.text("person IS NOT NULL"),
        postgresql_where=sa.text("person IS NOT NULL"),
        postgresql_concurrently=True,
    )
