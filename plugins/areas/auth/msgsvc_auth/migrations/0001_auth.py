"""The plugin's tables: sessions, static links, requests of other plugins, visits to platforms' pages, and
used data of mini apps.

Times are Unix milliseconds. Ids compare byte by byte on both databases, so they sort by creation.
"""

import sqlalchemy as sa
from alembic import op

revision = "auth_0001"
down_revision = None
phase = "expand"

Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _sessions()
    _links()
    _requests()
    _mini_app_uses()
    _platform_visits()


def _sessions() -> None:
    op.create_table(
        "auth_sessions",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("session_id", Id, primary_key=True),
        sa.Column("token_digest", sa.Text, nullable=False, unique=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("callback_url", sa.Text),
        sa.Column("channel", sa.Text),
        sa.Column("lang", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.Column("subscriber_id", Id),
        sa.Column("nonce", sa.Text),
        sa.Column("code_hash", sa.Text, unique=True),
        sa.Column("confirmed_at_ms", Ms),
        sa.Column("code_expires_at_ms", Ms),
        # Who asked to sign in, and the number to match.
        sa.Column("client_ip", sa.Text),
        sa.Column("client_agent", sa.Text),
        sa.Column("match_number", sa.Integer),
        # Of the secret that the browser of the hosted page keeps in a cookie.
        sa.Column("browser_digest", sa.Text),
        # Of a sign-in that another plugin started: on a page, whose request is named, or asked directly of
        # `subscriber_id`. Requests are deleted before their sessions.
        sa.Column("source", sa.Text),
        sa.Column("source_id", sa.Text),
        sa.Column("request_id", Id),
        sa.Column("requester_name", sa.Text),
        sa.Column("requester_url", sa.Text),
        # Signed in on the platform's page, not in the bot.
        sa.Column("on_platform", sa.Boolean, nullable=False, server_default=sa.false()),
        # A person who is erased takes their sign-ins along, and a code that is still out dies.
        sa.ForeignKeyConstraint(
            ["project_id", "subscriber_id"],
            ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
            ondelete="CASCADE",
        ),
    )
    op.create_index("auth_sessions_age", "auth_sessions", ["created_at_ms"])
    op.create_index("auth_sessions_subscriber", "auth_sessions", ["project_id", "subscriber_id"])
    op.create_index("auth_sessions_browser", "auth_sessions", ["browser_digest"], unique=True)
    # For the dashboard's list.
    op.create_index(
        "auth_sessions_newest", "auth_sessions", ["project_id", "created_at_ms", "session_id"]
    )


def _links() -> None:
    op.create_table(
        "auth_links",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("link_id", Id, primary_key=True),
        # Unique over all projects: a start payload names nothing but the slug.
        sa.Column("slug", sa.Text, nullable=False, unique=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("callback_url", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("number_matching", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("auth_links_callback", "auth_links", ["project_id", "callback_url"])


def _requests() -> None:
    """Sign-in pages of other plugins, each for one occasion."""
    op.create_table(
        "auth_requests",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("request_id", Id, primary_key=True),
        # Unique over all projects: a page's address names nothing else.
        sa.Column("token_digest", sa.Text, nullable=False, unique=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("source_id", sa.Text, nullable=False),
        sa.Column("requester_name", sa.Text, nullable=False),
        sa.Column("requester_url", sa.Text, nullable=False),
        sa.Column("return_url", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("lang", sa.Text),
        sa.Column("channel", sa.Text),
        sa.Column("number_matching", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    op.create_index("auth_requests_expiry", "auth_requests", ["expires_at_ms"])


def _mini_app_uses() -> None:
    """Signed data that has signed somebody in, kept until it is too old to be taken."""
    op.create_table(
        "auth_mini_app_uses",
        sa.Column("data_digest", sa.Text, primary_key=True),
        sa.Column("expires_at_ms", Ms, nullable=False),
    )
    op.create_index("auth_mini_app_uses_expiry", "auth_mini_app_uses", ["expires_at_ms"])


def _platform_visits() -> None:
    """The latest visit of a sign-in's browser to a platform's page."""
    op.create_table(
        "auth_platform_visits",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("session_id", Id, primary_key=True),
        sa.Column("visit_id", Id, nullable=False),
        sa.Column("channel_key", sa.Text, nullable=False),
        sa.Column("state_digest", sa.Text, nullable=False, unique=True),
        sa.Column("browser_digest", sa.Text, nullable=False),
        # Nonce and verifier, and later the code.
        sa.Column("sealed", sa.Text, nullable=False),
        sa.Column("sealed_code", sa.Text),
        sa.Column("return_path", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("failure", sa.Text),
        sa.Column("expires_at_ms", Ms, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "session_id"],
            ["auth_sessions.project_id", "auth_sessions.session_id"],
            ondelete="CASCADE",
        ),
    )


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")
