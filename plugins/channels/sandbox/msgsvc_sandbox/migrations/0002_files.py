"""Files that people attach to their messages, in chunks, as the core keeps its own."""

import sqlalchemy as sa
from alembic import op

revision = "sandbox_0002"
down_revision = "sandbox_0001"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "sandbox_files",
        sa.Column("file_id", Id, primary_key=True),
        sa.Column(
            "person_id",
            Id,
            sa.ForeignKey("sandbox_people.person_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("channel", Id, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("mime_type", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
    )
    op.create_index("sandbox_files_person", "sandbox_files", ["person_id"])
    op.create_table(
        "sandbox_file_chunks",
        sa.Column(
            "file_id",
            Id,
            sa.ForeignKey("sandbox_files.file_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
