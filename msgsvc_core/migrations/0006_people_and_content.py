"""What people allow and are told, what is known of them, templates, and messages sent in batches.

`core_projects.texts` and a permission's `title` and `description` are texts per language as JSON.
`core_messages.shown` is what people see of a message while an edit of it is under way.
`core_key_canary` has one row, by which a loss of `secret_keys` shows.
`core_chats.lang` is what the person chose there; without it their messenger's language counts.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0006"
down_revision = "core_0005"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger

COLUMNS = {
    "core_projects": [("texts", sa.Text)],
    "core_subscribers": [("attributes", sa.Text)],
    "core_chats": [("lang", sa.Text)],
    "core_messages": [
        ("permission", sa.Text),
        ("batch_id", Id),
        ("edited_at_ms", Ms),
        ("deleted_at_ms", Ms),
        ("shown", sa.Text),
    ],
}


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for name, kind in columns:
            op.add_column(table, sa.Column(name, kind))
    op.add_column(
        "core_links", sa.Column("permissions", sa.Text, nullable=False, server_default="[]")
    )
    # A mini app and an erasure name a person, and look for their chat.
    op.create_index("core_chats_user", "core_chats", ["channel", "user_id"])
    _permissions()
    _index_tags(["project_id", "tag", "subscriber_id"])
    op.create_index(
        "core_subscribers_created",
        "core_subscribers",
        ["project_id", "created_at_ms", "subscriber_id"],
    )
    op.create_table(
        "core_templates",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("template_id", Id, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("updated_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_batches",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("batch_id", Id, primary_key=True),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("sent", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("skipped", sa.Integer, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("finished_at_ms", Ms),
    )
    op.create_table(
        "core_key_canary",
        sa.Column("canary_id", sa.Integer, primary_key=True),
        sa.Column("sealed", sa.Text, nullable=False),
    )
    # Only messages of batches are in it, so that the others cost nothing.
    in_batch = sa.text("batch_id IS NOT NULL")
    op.create_index(
        "core_messages_batch",
        "core_messages",
        ["project_id", "batch_id", "message_id"],
        sqlite_where=in_batch,
        postgresql_where=in_batch,
    )


def _permissions() -> None:
    op.create_table(
        "core_permissions",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("is_default", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "core_subscriber_permissions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("permission", sa.Text, primary_key=True),
        sa.Column("granted_at_ms", Ms, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["project_id", "permission"],
            ["core_permissions.project_id", "core_permissions.key"],
            ondelete="CASCADE",
        ),
    )
    op.create_index(
        "core_subscriber_permissions_key",
        "core_subscriber_permissions",
        ["project_id", "permission", "subscriber_id"],
    )


def _index_tags(columns: list[str]) -> None:
    """With the ids, the index has the subscribers of a tag in the order of lists."""
    op.drop_index("core_subscriber_tags_tag", "core_subscriber_tags")
    op.create_index("core_subscriber_tags_tag", "core_subscriber_tags", columns)


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
