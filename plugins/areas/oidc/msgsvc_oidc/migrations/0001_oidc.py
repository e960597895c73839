"""The provider's tables: clients, signing keys, sessions of browsers, grants, and requests under way.

Times are Unix milliseconds. Codes and tokens are not stored: they are signed references to a row.
"""

import sqlalchemy as sa
from alembic import op

revision = "oidc_0001"
down_revision = None
phase = "expand"

# Ids sort by creation where they compare byte by byte.
Id = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
Ms = sa.BigInteger


def upgrade() -> None:
    _keys()
    _clients()
    _sessions()
    _requests()
    _polled_requests()
    _grants()
    _consents()
    _journal()
    _logout_deliveries()
    _registration_tokens()


def _keys() -> None:
    op.create_table(
        "oidc_keys",
        sa.Column("key_id", Id, primary_key=True),
        sa.Column("alg", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("public_jwk", sa.Text, nullable=False),
        sa.Column("private_sealed", sa.Text, nullable=False),
        sa.Column("changed_at_ms", Ms, nullable=False),
    )
    # One key signs, and one comes next: two processes can't make two.
    op.create_index(
        "oidc_keys_in_use",
        "oidc_keys",
        ["alg", "status"],
        unique=True,
        sqlite_where=sa.text("status <> 'retired'"),
        postgresql_where=sa.text("status <> 'retired'"),
    )


def _clients() -> None:
    op.create_table(
        "oidc_clients",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("client_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        # Lists and keys as JSON.
        sa.Column("redirect_uris", sa.Text, nullable=False),
        sa.Column("post_logout_redirect_uris", sa.Text, nullable=False),
        sa.Column("backchannel_logout_uri", sa.Text),
        sa.Column("auth_method", sa.Text, nullable=False),
        sa.Column("jwks", sa.Text),
        # Where the keys come from, if not from the registration, and when they were last asked for.
        sa.Column("jwks_uri", sa.Text),
        sa.Column("jwks_asked_at_ms", Ms),
        sa.Column("grant_types", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("first_party", sa.Boolean, nullable=False),
        sa.Column("number_matching", sa.Boolean, nullable=False),
        sa.Column("require_pushed", sa.Boolean, nullable=False),
        sa.Column("subject_type", sa.Text, nullable=False),
        sa.Column("signing_alg", sa.Text, nullable=False),
        sa.Column("home_url", sa.Text),
        sa.Column("dynamic", sa.Boolean, nullable=False),
        # Of the token by which a client that registered itself changes its registration.
        sa.Column("registration_digest", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_table(
        "oidc_client_secrets",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("client_id", Id, primary_key=True),
        sa.Column("secret_id", Id, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms),
        _of_client(),
    )
    # A signed assertion works once (RFC 7523, section 3).
    op.create_table(
        "oidc_assertions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("client_id", Id, primary_key=True),
        sa.Column("assertion_id", sa.Text, primary_key=True),
        sa.Column("expires_at_ms", Ms, nullable=False, index=True),
        _of_client(),
    )
    # What another host knows of a person instead of the subscriber's id.
    op.create_table(
        "oidc_subjects",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("sector", sa.Text, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("subject", Id, nullable=False),
        _of_subscriber(),
    )
    op.create_index(
        "oidc_subjects_by_subject",
        "oidc_subjects",
        ["project_id", "sector", "subject"],
        unique=True,
    )


def _sessions() -> None:
    op.create_table(
        "oidc_sessions",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("session_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("auth_time_ms", Ms, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False, index=True),
        sa.Column("ended_at_ms", Ms),
        _of_subscriber(),
    )
    op.create_index("oidc_sessions_of", "oidc_sessions", ["project_id", "subscriber_id"])


def _requests() -> None:
    op.create_table(
        "oidc_requests",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("request_id", Id, primary_key=True),
        sa.Column("client_id", Id, nullable=False),
        # `pushed`, `begun`, `signed_in` or `ended`.
        sa.Column("status", sa.Text, nullable=False),
        # The parameters as JSON.
        sa.Column("parameters", sa.Text, nullable=False),
        # Once the person has signed in.
        sa.Column("session_id", Id),
        # Of a device, which waits for the answer.
        sa.Column("device_id", Id),
        sa.Column("expires_at_ms", Ms, nullable=False, index=True),
        _of_client(),
    )


def _polled_requests() -> None:
    """Requests for which clients poll. `status` is `pending`, `approved`, `denied`, `expired` or `used`."""
    op.create_table(
        "oidc_device_requests",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("request_id", Id, primary_key=True),
        sa.Column("client_id", Id, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("acr_values", sa.Text, nullable=False),
        # Until somebody answers.
        sa.Column("user_code_hash", sa.Text),
        sa.Column("subscriber_id", Id),
        sa.Column("auth_time_ms", Ms),
        sa.Column("method", sa.Text),
        *_polling(),
        _of_client(),
        _of_subscriber(),
    )
    op.create_index(
        "oidc_device_requests_by_code",
        "oidc_device_requests",
        ["project_id", "user_code_hash"],
        unique=True,
    )
    op.create_table(
        "oidc_ciba_requests",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("request_id", Id, primary_key=True),
        sa.Column("client_id", Id, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        # The question, of the plugin that signs people in.
        sa.Column("session_id", Id, nullable=False),
        *_polling(),
        _of_client(),
        _of_subscriber(),
    )
    for table in ("oidc_device_requests", "oidc_ciba_requests"):
        op.create_index(f"{table}_of_client", table, ["project_id", "client_id"])
        op.create_index(f"{table}_of_person", table, ["project_id", "subscriber_id"])


def _polling() -> list[sa.Column[int]]:
    return [
        sa.Column("interval_s", sa.Integer, nullable=False),
        sa.Column("polled_at_ms", Ms, nullable=False, server_default="0"),
        sa.Column("created_at_ms", Ms, nullable=False),
        sa.Column("expires_at_ms", Ms, nullable=False, index=True),
    ]


def _grants() -> None:
    op.create_table(
        "oidc_grants",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("grant_id", Id, primary_key=True),
        sa.Column("client_id", Id, nullable=False),
        sa.Column("subscriber_id", Id, nullable=False),
        sa.Column("subject", Id, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("offline", sa.Boolean, nullable=False),
        sa.Column("auth_time_ms", Ms, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.Column("session_id", Id),
        sa.Column("nonce", sa.Text),
        sa.Column("redirect_uri", sa.Text),
        sa.Column("code_challenge", sa.Text),
        sa.Column("code_expires_at_ms", Ms),
        sa.Column("code_used_at_ms", Ms),
        sa.Column("refresh_number", sa.Integer, nullable=False, server_default="0"),
        sa.Column("refreshed_at_ms", Ms),
        sa.Column("refresh_expires_at_ms", Ms),
        sa.Column("revoked_at_ms", Ms),
        sa.Column("revoked_reason", sa.Text),
        sa.Column("created_at_ms", Ms, nullable=False),
        # After this nothing refers to it any more.
        sa.Column("ends_at_ms", Ms, nullable=False, index=True),
        _of_client(),
        # Not of the subscriber: the plugin deletes the grants of who is erased, and notifies the clients
        # before.
    )
    op.create_index("oidc_grants_of_client", "oidc_grants", ["project_id", "client_id", "grant_id"])
    op.create_index("oidc_grants_of_person", "oidc_grants", ["project_id", "subscriber_id"])
    op.create_index("oidc_grants_of_session", "oidc_grants", ["project_id", "session_id"])


def _consents() -> None:
    op.create_table(
        "oidc_consents",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("client_id", Id, primary_key=True),
        sa.Column("subscriber_id", Id, primary_key=True),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("granted_at_ms", Ms, nullable=False),
        _of_client(),
        _of_subscriber(),
    )
    op.create_index("oidc_consents_of_person", "oidc_consents", ["project_id", "subscriber_id"])


def _journal() -> None:
    """Sign-ins of a client, with the reason of those that failed. Kept for some days."""
    op.create_table(
        "oidc_sign_ins",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("entry_id", Id, primary_key=True),
        sa.Column("client_id", Id, nullable=False),
        sa.Column("flow", sa.Text, nullable=False),
        # `signed_in`, or the registered error code.
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("subscriber_id", Id),
        sa.Column("at_ms", Ms, nullable=False, index=True),
        _of_client(),
    )
    op.create_index("oidc_sign_ins_of_person", "oidc_sign_ins", ["project_id", "subscriber_id"])
    op.create_index(
        "oidc_sign_ins_of_client", "oidc_sign_ins", ["project_id", "client_id", "entry_id"]
    )


def _logout_deliveries() -> None:
    """Logout tokens for clients, and the journal of them. Without a foreign key to the session and to the
    person: both may be gone when the token is sent."""
    op.create_table(
        "oidc_logout_deliveries",
        sa.Column("project_id", Id, primary_key=True),
        sa.Column("delivery_id", Id, primary_key=True),
        sa.Column("client_id", Id, nullable=False),
        sa.Column("subject", Id, nullable=False),
        # Without one, all sessions of the person have ended.
        sa.Column("session_id", Id),
        # `pending`, `delivered` or `failed`.
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("created_at_ms", Ms, nullable=False, index=True),
        sa.Column("next_attempt_at_ms", Ms),
        _of_client(),
    )
    op.create_index(
        "oidc_logout_deliveries_of_client",
        "oidc_logout_deliveries",
        ["project_id", "client_id", "delivery_id"],
    )


def _registration_tokens() -> None:
    """Tokens by which software registers itself; of each, only the digest."""
    op.create_table(
        "oidc_registration_tokens",
        sa.Column("project_id", Id, _project(), primary_key=True),
        sa.Column("token_id", Id, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        # Without one, any number.
        sa.Column("uses_left", sa.Integer),
        sa.Column("expires_at_ms", Ms, index=True),
        sa.Column("created_at_ms", Ms, nullable=False),
    )
    op.create_index(
        "oidc_registration_tokens_by_digest",
        "oidc_registration_tokens",
        ["project_id", "digest"],
        unique=True,
    )


def _project() -> sa.ForeignKey:
    return sa.ForeignKey("core_projects.project_id", ondelete="CASCADE")


def _of_client() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["project_id", "client_id"],
        ["oidc_clients.project_id", "oidc_clients.client_id"],
        ondelete="CASCADE",
    )


def _of_subscriber() -> sa.ForeignKeyConstraint:
    """Who is erased takes along what they allowed."""
    return sa.ForeignKeyConstraint(
        ["project_id", "subscriber_id"],
        ["core_subscribers.project_id", "core_subscribers.subscriber_id"],
        ondelete="CASCADE",
    )
