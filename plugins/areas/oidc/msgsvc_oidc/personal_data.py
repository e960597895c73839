"""What of the tables of OpenID Connect is personal data."""

from msgsvc_core.db.personal_data import PersonalTable

PERSONAL_DATA = (
    PersonalTable(
        section="openid_subjects",
        table="oidc_subjects",
        columns=("sector", "subject"),
        order=("sector",),
    ),
    PersonalTable(
        section="openid_sessions",
        table="oidc_sessions",
        columns=("session_id", "auth_time_ms", "method", "expires_at_ms", "ended_at_ms"),
        order=("session_id",),
    ),
    PersonalTable(
        section="openid_grants",
        table="oidc_grants",
        columns=(
            *("grant_id", "client_id", "scopes", "method", "auth_time_ms", "created_at_ms"),
            *("ends_at_ms", "revoked_at_ms", "revoked_reason"),
        ),
        order=("grant_id",),
    ),
    PersonalTable(
        section="openid_consents",
        table="oidc_consents",
        columns=("client_id", "scopes", "granted_at_ms"),
        order=("client_id",),
    ),
    PersonalTable(
        section="openid_sign_ins",
        table="oidc_sign_ins",
        columns=("client_id", "flow", "outcome", "detail", "at_ms"),
        order=("at_ms",),
    ),
    PersonalTable(
        section="openid_requests_by_device",
        table="oidc_device_requests",
        columns=("client_id", "status", "scopes", "method", "auth_time_ms"),
        order=("request_id",),
    ),
    PersonalTable(
        section="openid_requests_by_backchannel",
        table="oidc_ciba_requests",
        columns=("client_id", "status", "scopes"),
        order=("request_id",),
    ),
)
