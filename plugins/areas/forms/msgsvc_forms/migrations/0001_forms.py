"""The plugin's tables: forms, their versions, conversations under way, and what was sent in.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "forms_0001"
down_revision = None

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _forms()
    _versions()
    _submissions()
    _conversations()


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
    op.create_index("forms_submissions_age", "forms_submissions", ["created_at_ms"])


def _conversations() -> None:
    op.create_table(
        "forms_conversations",
        sa.Column("project_id", Id, primary_key=True),
        # One at a time for each person.
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("conversation_id", Id, nullable=False, unique=True),
        sa.Column("form_id", Id, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        # Answers, the question that is asked, tries: as JSON.
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
        _of_form(),
        _of_subscriber(),
    )
    op.create_index("forms_conversations_form", "forms_conversations", ["project_id", "form_id"])
    op.create_index("forms_conversations_age", "forms_conversations", ["updated_at_ms"])


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
