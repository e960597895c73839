"""What people are searched by, beside their names: see `msgsvc_core.subscribers.searching`."""

import unicodedata

import sqlalchemy as sa
from alembic import op

revision = "core_0013"
down_revision = "core_0012"

Folded = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

#: A column, and the one that it is made of.
COLUMNS = {
    "search_name": "first_name",
    "search_username": "username",
    "search_external_id": "external_id",
}

#: Rows of a step.
STEP = 5000


def upgrade() -> None:
    for column in COLUMNS:
        op.add_column("core_subscribers", sa.Column(column, Folded))
    _fill()
    for column in COLUMNS:
        there = sa.text(f"{column} IS NOT NULL")
        op.create_index(
            f"core_subscribers_{column}",
            "core_subscribers",
            ["project_id", column, "subscriber_id"],
            sqlite_where=there,
            postgresql_where=there,
        )


def _fill() -> None:
    connection = op.get_bind()
    after = {"after_project": "", "after": ""}
    page = sa.text(
        f"SELECT project_id, subscriber_id, {', '.join(COLUMNS.values())} FROM core_subscribers"
        " WHERE (project_id, subscriber_id) > (:after_project, :after)"
        f" ORDER BY project_id, subscriber_id LIMIT {STEP}"
    )
    sets = ", ".join(f"{column} = :{column}" for column in COLUMNS)
    change = sa.text(
        f"UPDATE core_subscribers SET {sets}"
        " WHERE project_id = :project_id AND subscriber_id = :subscriber_id"
    )
    while rows := connection.execute(page, after).mappings().all():
        connection.execute(
            change,
            [
                {
                    "project_id": row["project_id"],
                    "subscriber_id": row["subscriber_id"],
                    **{column: _folded(row[field]) for column, field in COLUMNS.items()},
                }
                for row in rows
            ],
        )
        after = {"after_project": rows[-1]["project_id"], "after": rows[-1]["subscriber_id"]}


def _folded(text: str | None) -> str | None:
    """As it was done when this migration was written."""
    if text is None:
        return None
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split()).removeprefix("@")[:64]
