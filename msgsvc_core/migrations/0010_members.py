"""Members of a project, who they are in messengers, and the links by which they say so.

An e-mail names one active member of a project; that of a removed one is free again. A link is kept until
it expires although it works once, so that who opens it twice is answered as the first time: `used_by` is
the subscriber who opened it, and names nobody who has been erased.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0010"
down_revision = "core_0009"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "core_members",
        sa.Column(
            "project_id",
            Id,
            sa.ForeignKey("core_projects.project_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("member_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("email", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("removed_at_ms", Ms),
    )
    is_active = sa.text("status = 'active'")
    op.create_index(
        "core_members_email",
        "core_members",
        ["project_id", "email"],
        unique=True,
        sqlite_where=is_active,
        postgresql_where=is_active,
    )
    op.create_table(
        "core_member_subscribers",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("linked_at_ms", Ms, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
        _member(),
    )
    op.create_index(
        "core_member_subscribers_member", "core_member_subscribers", ["project_id", "member_id"]
    )
    op.create_table(
        "core_member_links",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("member_id", Id, nullable=False),
        sa.Column("used_by", Id),
        sa.Column("expires_at_ms", Ms, nullable=False),
        _member(),
    )
    op.create_index("core_member_links_member", "core_member_links", ["project_id", "member_id"])


def _member() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "member_id"],
        ["core_members.project_id", "core_members.member_id"],
        ondelete="CASCADE",
    )
