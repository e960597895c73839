"""Accounts, the audit log, and counts of what happened in projects.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "dashboard_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _counts()
    _accounts()
    _audit()


def _counts() -> None:
    """How often what happened in a project on a day: what the charts of the overview show.

    `day` counts days since 1970, in UTC. A row is one writer's share of a day's count: writers at the same
    time have rows of their own, and so never wait for each other; days that are over are folded into
    share 0.
    """
    op.create_table(
        "dashboard_counts",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("event", Id, primary_key=True),
        sa.Column("share", sa.Integer, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
    )
    _index("dashboard_counts", "day", "day")


def _accounts() -> None:
    """Who signs in; their sessions, links and second factors.

    An email names one account. `totp_secret` is encrypted, `password_hash` is argon2id's; tokens of
    sessions, links, recovery codes and requests are kept by their digest. `dashboard_account_messengers`
    says whose account a person on a bot is; `dashboard_account_requests` are browsers that wait for their
    `number` to be picked in a messenger.
    """
    op.create_table(
        "dashboard_accounts",
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
        "dashboard_account_sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("account_id", Id, _account(), nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("seen_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("ip", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
    )
    _index("dashboard_account_sessions", "account", "account_id", "session_id")
    _index("dashboard_account_sessions", "end", "expires_at_ms")
    op.create_table(
        "dashboard_account_links",
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
    _index("dashboard_account_links", "account", "account_id")
    _index("dashboard_account_links", "member", "project_id", "member_id")
    _index("dashboard_account_links", "end", "expires_at_ms")
    op.create_table(
        "dashboard_account_codes",
        sa.Column("account_id", Id, _account(), primary_key=True),
        sa.Column("digest", sa.Text, primary_key=True),
    )
    op.create_table(
        "dashboard_account_messengers",
        sa.Column("bot", Id, primary_key=True),
        sa.Column("user_id", Id, primary_key=True),
        sa.Column("account_id", Id, _account(), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("linked_at_ms", Ms, nullable=False),
    )
    _index("dashboard_account_messengers", "account", "account_id")
    op.create_table(
        "dashboard_account_requests",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("purpose", sa.Text, nullable=False),
        sa.Column("browser_digest", sa.Text, nullable=False, unique=True),
        sa.Column("account_id", Id, _account()),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("ip", sa.Text, nullable=False),
        sa.Column("user_agent", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    _index("dashboard_account_requests", "account", "account_id")
    _index("dashboard_account_requests", "end", "expires_at_ms")


def _audit() -> None:
    op.create_table(
        "dashboard_audit",
        sa.Column("entry_id", Id, primary_key=True),
        # Null for what concerns an account or the installation.
        sa.Column("project_id", Id),
        sa.Column("account_id", Id),
        sa.Column("at_ms", Ms, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("ip", sa.Text, nullable=False),
    )
    _index("dashboard_audit", "project", "project_id", "entry_id")
    _index("dashboard_audit", "account", "account_id", "entry_id")
    _index("dashboard_audit", "person", "project_id", "account_id", "entry_id")
    _index("dashboard_audit", "time", "at_ms")


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


def _account() -> sa.ForeignKey:
    return sa.ForeignKey("dashboard_accounts.account_id", ondelete="CASCADE")


def _index(table: str, name: str, *columns: str) -> None:
    op.create_index(f"{table}_{name}", table, list(columns))
