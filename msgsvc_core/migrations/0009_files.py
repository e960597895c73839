"""Files: what people send to bots, and what projects upload, kept in chunks.

`core_files.source` is where a file that has yet to be fetched is found, encrypted; it is emptied when
the file is there, or won't come. Subscribers are named without a foreign key: their files go with
`subscriber.erase`, a few at a time, and not within the request that erases a person.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0009"
down_revision = "core_0008"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "core_files",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("mime_type", sa.Text, nullable=False),
        sa.Column("size", Ms, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("source", sa.Text),
        sa.Column("is_kept", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    # Whoever has a signed address names the file alone.
    op.create_index("core_files_id", "core_files", ["file_id"], unique=True)
    op.create_index("core_files_subscriber", "core_files", ["project_id", "subscriber_id"])
    loose = sa.text("NOT is_kept")
    op.create_index(
        "core_files_loose",
        "core_files",
        ["created_at_ms"],
        sqlite_where=loose,
        postgresql_where=loose,
    )
    op.create_table(
        "core_file_chunks",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "file_id"],
            ["core_files.project_id", "core_files.file_id"],
            ondelete="CASCADE",
        ),
    )
