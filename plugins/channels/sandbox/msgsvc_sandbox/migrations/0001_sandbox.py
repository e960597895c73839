"""People, chats, messages, files, and how the channels misbehave. Times are Unix milliseconds."""

import sqlalchemy as sa
from alembic import op

revision = "sandbox_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "sandbox_people",
        sa.Column("person_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("username", sa.Text, nullable=False),
        sa.Column("lang", sa.Text, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "sandbox_chats",
        sa.Column("person_id", Id, _person(), primary_key=True),
        sa.Column("channel", Id, primary_key=True),
        sa.Column("blocked", sa.Integer, nullable=False),
        sa.Column("unread", sa.Integer, nullable=False),
        sa.Column("notice", sa.Text, nullable=False),
        sa.Column("notice_revision", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "sandbox_messages",
        sa.Column("person_id", Id, _person(), primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True),
        sa.Column("channel", Id, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("sent_at_ms", Ms, nullable=False),
        sa.Column("edited_at_ms", Ms),
        sa.Column("deleted", sa.Integer, nullable=False),
        sa.Column("revision", sa.BigInteger, nullable=False),
        # Under which a bot sent it: with the same key it is shown once.
        sa.Column("send_key", sa.Text),
    )
    op.create_index("sandbox_messages_changed", "sandbox_messages", ["person_id", "revision"])
    has_key = sa.text("send_key IS NOT NULL")
    op.create_index(
        "sandbox_messages_key",
        "sandbox_messages",
        ["person_id", "channel", "send_key"],
        unique=True,
        sqlite_where=has_key,
        postgresql_where=has_key,
    )
    op.create_table(
        "sandbox_faults",
        sa.Column("channel", Id, primary_key=True),
        sa.Column("reason", sa.Text),
        sa.Column("retry_after_s", sa.Integer, nullable=False),
        sa.Column("delay_ms", sa.BigInteger, nullable=False),
        sa.Column("remaining", sa.Integer),
    )
    # What people attach to their messages, in chunks, as the core keeps its own.
    op.create_table(
        "sandbox_files",
        sa.Column("file_id", Id, primary_key=True),
        sa.Column("person_id", Id, _person(), nullable=False),
        sa.Column("channel", Id, nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("mime_type", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
    )
    op.create_index("sandbox_files_person", "sandbox_files", ["person_id"])
    op.create_table(
        "sandbox_file_chunks",
        sa.Column("file_id", Id, _file(), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )


def _file() -> sa.ForeignKey:
    return sa.ForeignKey("sandbox_files.file_id", ondelete="CASCADE")


def _person() -> sa.ForeignKey:
    return sa.ForeignKey("sandbox_people.person_id", ondelete="CASCADE")
