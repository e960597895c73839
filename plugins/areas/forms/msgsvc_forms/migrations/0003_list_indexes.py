"""Submissions and spam apart, for their lists and for what removes the old ones.

However much spam a form gets, nobody who looks for the rest goes through it, and the other way round.
"""

import sqlalchemy as sa
from alembic import op

revision = "forms_0003"
down_revision = "forms_0002"

_TABLE = "forms_submissions"
_OF_FORM = ["project_id", "form_id"]

#: Name, columns, and which rows are in it.
INDEXES = [
    ("forms_submissions_kept", [*_OF_FORM, "submission_id"], "spam IS NULL"),
    ("forms_submissions_source", [*_OF_FORM, "source", "submission_id"], "spam IS NULL"),
    ("forms_submissions_spam", [*_OF_FORM, "submission_id"], "spam IS NOT NULL"),
    ("forms_submissions_kept_age", ["created_at_ms"], "spam IS NULL"),
    ("forms_submissions_spam_age", ["created_at_ms"], "spam IS NOT NULL"),
]


def upgrade() -> None:
    for name, columns, condition in INDEXES:
        where = sa.text(condition)
        op.create_index(name, _TABLE, columns, sqlite_where=where, postgresql_where=where)
    op.drop_index("forms_submissions_age", _TABLE)
