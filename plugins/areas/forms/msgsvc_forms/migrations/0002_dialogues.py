"""Conversations in messengers, one under way in each chat.

They take the place of a table that nothing has written to: a bot that several projects share has one
chat with a person, in which one of their forms at a time is filled in.
"""

import sqlalchemy as sa
from alembic import op

revision = "forms_0002"
down_revision = "forms_0001"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.drop_table("forms_conversations")
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
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "forms_dialogues_active",
        "forms_dialogues",
        ["channel", "chat_id"],
        unique=True,
        sqlite_where=sa.text("status = 'active'"),
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        "forms_dialogues_chat", "forms_dialogues", ["channel", "chat_id", "updated_at_ms"]
    )
    op.create_index(
        "forms_dialogues_subscriber", "forms_dialogues", ["project_id", "subscriber_id"]
    )
    op.create_index("forms_dialogues_age", "forms_dialogues", ["status", "updated_at_ms"])


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
