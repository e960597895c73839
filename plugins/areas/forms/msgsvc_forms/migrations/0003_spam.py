"""An index for what was taken for spam, which is looked at apart, and is little among much."""

import sqlalchemy as sa
from alembic import op

revision = "forms_0003"
down_revision = "forms_0002"


def upgrade() -> None:
    op.create_index(
        "forms_submissions_spam",
        "forms_submissions",
        ["project_id", "form_id", "submission_id"],
        sqlite_where=sa.text("spam IS NOT NULL"),
        postgresql_where=sa.text("spam IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("forms_submissions_spam", "forms_submissions")
