"""Where answers were copied to, which outlives the submission: who deletes that deletes the copies."""

import json

import sqlalchemy as sa
from alembic import op

revision = "forms_0006"
down_revision = "forms_0005"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

#: Rows that are written at once.
CHUNK = 1000


def upgrade() -> None:
    copies = op.create_table(
        "forms_copies",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("submission_id", Id, primary_key=True),
        # A message's, mailing's or ticket's id, as `kind` says: subscriber, tag or ticket.
        sa.Column("copy_id", Id, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        # Who sent it in, until they are erased.
        sa.Column("subscriber_id", Id),
    )
    op.create_index(
        "forms_copies_subscriber",
        "forms_copies",
        ["project_id", "subscriber_id"],
        sqlite_where=sa.text("subscriber_id IS NOT NULL"),
        postgresql_where=sa.text("subscriber_id IS NOT NULL"),
    )
    connection = op.get_bind()
    found = connection.execute(
        sa.text(
            "SELECT project_id, submission_id, subscriber_id, leads FROM forms_submissions"
            " WHERE leads <> '[]'"
        )
    )
    rows = [
        {
            "project_id": project_id,
            "submission_id": submission_id,
            "copy_id": lead["id"],
            "kind": lead["kind"],
            "subscriber_id": subscriber_id,
        }
        for project_id, submission_id, subscriber_id, leads in found.fetchall()
        for lead in json.loads(leads)
        if lead.get("id") is not None
    ]
    for start in range(0, len(rows), CHUNK):
        op.bulk_insert(copies, rows[start : start + CHUNK])
