"""The plugin's tables: forms, their versions, what was sent in and where to, and conversations.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "forms_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _forms()
    _versions()
    _submissions()
    _dialogues()
    _copies()


def _forms() -> None:
    op.create_table(
        "forms_forms",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("form_id", Id, primary_key=True),
        sa.Column("slug", sa.Text, nullable=False),
        # What follows `form_` in deep links, which name no project.
        sa.Column("start", sa.Text, nullable=False, unique=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        # Out of sight at once; what was sent in with it goes a part at a time.
        sa.Column("deleted_at_ms", Ms),
        sa.UniqueConstraint("project_id", "slug"),
        # Its public address names no project either.
        sa.UniqueConstraint("form_id"),
    )


def _versions() -> None:
    op.create_table(
        "forms_versions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("form_id", Id, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True),
        # The definition, as JSON.
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        _of_form(),
    )


def _submissions() -> None:
    op.create_table(
        "forms_submissions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("submission_id", Id, primary_key=True),
        sa.Column("form_id", Id, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("subscriber_id", Id),
        sa.Column("lang", sa.Text, nullable=False),
        # Why it was taken for spam; null if it was not.
        sa.Column("spam", sa.Text),
        # A digest of what makes a second one the same.
        sa.Column("once_key", sa.Text),
        sa.Column("answers", sa.Text, nullable=False),
        sa.Column("leads", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        # How much of its files the web sent, so that strangers can't fill the disk.
        sa.Column("file_bytes", sa.BigInteger, nullable=False, server_default="0"),
        _of_form(),
        # A person who is erased takes their answers along.
        _of_subscriber(),
        sa.UniqueConstraint("project_id", "form_id", "once_key"),
    )
    op.create_index(
        "forms_submissions_form", "forms_submissions", ["project_id", "form_id", "submission_id"]
    )
    op.create_index(
        "forms_submissions_subscriber", "forms_submissions", ["project_id", "subscriber_id"]
    )
    # Spam apart: however much of it a form gets, nobody who looks for the rest goes through it, and the
    # other way round.
    of_form = ["project_id", "form_id"]
    for name, columns, where in (
        ("kept", [*of_form, "submission_id"], "spam IS NULL"),
        ("source", [*of_form, "source", "submission_id"], "spam IS NULL"),
        ("spam", [*of_form, "submission_id"], "spam IS NOT NULL"),
        ("kept_age", ["created_at_ms"], "spam IS NULL"),
        ("spam_age", ["created_at_ms"], "spam IS NOT NULL"),
        ("files", ["project_id", "created_at_ms"], "file_bytes > 0"),
    ):
        _partial_index(f"forms_submissions_{name}", "forms_submissions", columns, where)


def _dialogues() -> None:
    """Conversations in messengers, one under way in each chat: a bot that several projects share has one
    chat with a person, in which one of their forms at a time is filled in."""
    op.create_table(
        "forms_dialogues",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("dialogue_id", Id, primary_key=True),
        # The key of the bot, and its chat.
        sa.Column("channel", sa.Text, nullable=False),
        sa.Column("chat_id", sa.Text, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        # No reference: whoever fills in a form that is deleted is told so.
        sa.Column("form_id", Id, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        # Answers, the question that is asked, tries: as JSON. Of one that ended, no answer is left.
        sa.Column("state", sa.Text, nullable=False),
        # Grows with every change, so that of two at once one counts.
        sa.Column("revision", sa.Integer, nullable=False),
        # When the person last did something else in the chat.
        sa.Column("aside_at_ms", Ms),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        # A person who is erased takes their answers along.
        _of_subscriber(),
    )
    _partial_index(
        "forms_dialogues_active",
        "forms_dialogues",
        ["channel", "chat_id"],
        "status = 'active'",
        unique=True,
    )
    op.create_index(
        "forms_dialogues_chat", "forms_dialogues", ["channel", "chat_id", "updated_at_ms"]
    )
    op.create_index(
        "forms_dialogues_subscriber", "forms_dialogues", ["project_id", "subscriber_id"]
    )
    op.create_index("forms_dialogues_age", "forms_dialogues", ["status", "updated_at_ms"])


def _copies() -> None:
    """Where answers were copied to; outlives the submission: who deletes that deletes the copies."""
    op.create_table(
        "forms_copies",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("submission_id", Id, primary_key=True),
        # A message's, mailing's or ticket's id, as `kind` says: subscriber, tag or ticket.
        sa.Column("copy_id", Id, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        # Who sent it in, until they are erased.
        sa.Column("subscriber_id", Id),
    )
    _partial_index(
        "forms_copies_subscriber",
        "forms_copies",
        ["project_id", "subscriber_id"],
        "subscriber_id IS NOT NULL",
    )


def _partial_index(
    name: str, table: str, columns: list[str], condition: str, *, unique: bool = False
) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


def _of_form() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "form_id"],
        ["forms_forms.project_id", "forms_forms.form_id"],
        ondelete="CASCADE",
    )


def _of_subscriber() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "subscriber_id"],
        ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
        ondelete="CASCADE",
    )
