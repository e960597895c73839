"""Accounts: who signs in, owns projects and is a member of them; their sessions; what they changed.

An e-mail names one account. `totp_secret` is encrypted, `password_hash` is argon2id's; tokens of
sessions, links, recovery codes and requests are kept by their digest. A project without an account
belongs to the operator alone. `core_account_messengers` says whose account a person on a bot is;
`core_account_requests` wait for a Yes in a messenger.
`core_audit.project_id` is null for what concerns an account or the installation.
"""

import sqlalchemy as sa
from alembic import op

revision = "core_0011"
down_revision = "core_0010"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    op.create_table(
        "core_accounts",
        sa.Column("account_id", Id, primary_key=True),
        sa.Column("email", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("is_operator", sa.Boolean, nullable=False),
        sa.Column("lang", sa.Text),
        sa.Column("timezone", sa.Text),
        sa.Column("password_hash", sa.Text),
        sa.Column("password_set_at_ms", Ms),
        sa.Column("totp_secret", sa.Text),
        sa.Column("totp_confirmed_at_ms", Ms),
        sa.Column("totp_last_step", Ms),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("signed_in_at_ms", Ms),
    )
    op.create_table(
        "core_account_sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("account_id", Id, _account(), nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("seen_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("ip", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
    )
    op.create_index(
        "core_account_sessions_account", "core_account_sessions", ["account_id", "session_id"]
    )
    op.create_index("core_account_sessions_end", "core_account_sessions", ["expires_at_ms"])
    op.create_table(
        "core_account_links",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("account_id", Id, _account()),
        sa.Column("project_id", Id),
        sa.Column("member_id", Id),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("used_at_ms", Ms),
        sa.ForeignKeyConstraint(
            ["project_id", "member_id"],
            ["core_members.project_id", "core_members.member_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index("core_account_links_account", "core_account_links", ["account_id"])
    op.create_index("core_account_links_member", "core_account_links", ["project_id", "member_id"])
    op.create_index("core_account_links_end", "core_account_links", ["expires_at_ms"])
    op.create_table(
        "core_account_codes",
        sa.Column("account_id", Id, _account(), primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
    )
    op.create_table(
        "core_account_messengers",
        sa.Column("bot", Id, primary_key=True),
        sa.Column("user_id", Id, primary_key=True),
        sa.Column("account_id", Id, _account(), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("linked_at_ms", Ms, nullable=False),
    )
    op.create_index("core_account_messengers_account", "core_account_messengers", ["account_id"])
    op.create_table(
        "core_account_requests",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("browser_digest", sa.Text, nullable=False, unique=True),
        sa.Column("account_id", Id, _account()),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("ip", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    op.create_index("core_account_requests_account", "core_account_requests", ["account_id"])
    op.create_index("core_account_requests_end", "core_account_requests", ["expires_at_ms"])
    op.add_column("core_projects", sa.Column("account_id", Id))
    op.create_index("core_projects_account", "core_projects", ["account_id", "project_id"])
    op.add_column("core_members", sa.Column("account_id", Id))
    is_active = sa.text("status = 'active' AND account_id IS NOT NULL")
    op.create_index(
        "core_members_account",
        "core_members",
        ["account_id", "project_id"],
        unique=True,
        sqlite_where=is_active,
        postgresql_where=is_active,
    )
    op.create_table(
        "core_audit",
        sa.Column("entry_id", Id, primary_key=True),
        sa.Column("project_id", Id),
        sa.Column("account_id", Id),
        sa.Column("at_ms", Ms, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("ip", sa.Text, nullable=False),
    )
    op.create_index("core_audit_project", "core_audit", ["project_id", "entry_id"])
    op.create_index("core_audit_account", "core_audit", ["account_id", "entry_id"])
    op.create_index("core_audit_person", "core_audit", ["project_id", "account_id", "entry_id"])
    op.create_index("core_audit_time", "core_audit", ["at_ms"])


def _account() -> sa.ForeignKey:
    return sa.ForeignKey("core_accounts.account_id", ondelete="CASCADE")
