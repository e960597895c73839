"""The section `[oidc]` of the configuration."""

from ipaddress import ip_network

from pydantic import Field, field_validator

from msgsvc_core.config.sections import Section
from msgsvc_oidc.protocol.clients import SigningAlg


class OidcSettings(Section):
    """Lifetimes and limits of the OpenID provider."""

    signing_alg: SigningAlg = Field(
        "RS256", description="Algorithm of ID tokens for new clients; all clients know RS256."
    )
    # RFC 6749, section 4.1.2: at most ten minutes.
    code_lifetime_s: int = Field(
        60, ge=5, le=600, description="Seconds for which an authorization code can be exchanged."
    )
    id_token_lifetime_s: int = Field(
        600, ge=30, le=86400, description="Seconds for which an ID token is valid."
    )
    access_token_lifetime_s: int = Field(
        600, ge=30, le=86400, description="Seconds for which an access token is valid."
    )
    refresh_idle_days: int = Field(
        30, ge=1, le=365, description="Days for which a refresh token can be used."
    )
    refresh_days: int = Field(
        365,
        ge=1,
        le=3650,
        description="Days after which a person has to sign in again, however often "
        "the client refreshes.",
    )
    refresh_reuse_s: int = Field(
        10,
        ge=0,
        le=120,
        description="Seconds for which a rotated refresh token is answered with its "
        "successor, for clients that lost the response; 0 allows no repetition.",
    )
    session_hours: int = Field(
        12,
        ge=1,
        le=720,
        description="Hours for which a browser stays signed in to the provider; other "
        "clients then ask for no sign-in.",
    )
    request_lifetime_s: int = Field(
        900, ge=60, le=3600, description="Seconds for signing in and agreeing."
    )
    # RFC 9126, section 2.2.
    pushed_lifetime_s: int = Field(
        90,
        ge=5,
        le=600,
        description="Seconds for which a pushed authorization request can be used.",
    )
    device_lifetime_s: int = Field(
        600,
        ge=60,
        le=3600,
        description="Seconds for which the code that a device shows can be entered.",
    )
    ciba_lifetime_s: int = Field(
        300,
        ge=10,
        le=3600,
        description="Seconds for which a person can answer a backchannel request, as far as "
        "auth.session_lifetime_s allows.",
    )
    # RFC 8628, section 3.2.
    poll_interval_s: int = Field(
        5,
        ge=1,
        le=60,
        description="Seconds between a client's requests for the answer, of devices and of "
        "backchannel requests.",
    )
    secret_overlap_hours: int = Field(
        72, ge=0, le=720, description="Hours for which a client's previous secret stays valid."
    )
    key_days: int = Field(90, ge=1, le=3650, description="Days for which a signing key signs.")
    # A key is published this long before it signs, and after it has stopped.
    jwks_max_age_s: int = Field(
        3600, ge=60, le=86400, description="Seconds for which clients may cache the signing keys."
    )
    max_clients: int = Field(100, ge=1, description="Clients of a project.")
    registration: bool = Field(
        False,
        description="Let software register itself as a client, by an initial access token of the "
        "project (RFC 7591).",
    )
    allow_http_redirects: bool = Field(
        False, description="Allow redirect URIs over http for other hosts than localhost."
    )
    logout_timeout_s: float = Field(
        10.0, gt=0, le=60, description="Seconds for one delivery of a logout token."
    )
    allow_http_logout: bool = Field(
        False,
        description="Accept http:// URLs for logout tokens and for clients' keys in addition to "
        "https://.",
    )
    allow_cidrs: tuple[str, ...] = Field(
        (),
        description="Non-public ranges in which clients may receive logout tokens and publish keys, "
        "for closed networks and development.",
    )
    requests_per_minute_per_address: int = Field(
        120, ge=1, description="Authorization requests of one address."
    )
    # A code has 34 bits (RFC 8628, section 5.1).
    device_codes_per_minute_per_address: int = Field(
        10, ge=1, description="Device codes that are entered from one address."
    )
    ciba_requests_per_minute_per_client: int = Field(
        300, ge=1, description="Backchannel requests of one client."
    )
    failures_per_minute_per_client: int = Field(
        60, ge=1, description="Failed authentications of one client from one address."
    )
    apps_in_menu: bool = Field(
        False,
        description="List the command `/apps` in bots' menus and help; it works without, too.",
    )
    sign_in_log_days: int = Field(
        30, ge=1, le=365, description="Days for which the sign-ins of a client are listed."
    )

    @field_validator("allow_cidrs")
    @classmethod
    def _are_ranges(cls, cidrs: tuple[str, ...]) -> tuple[str, ...]:
        for cidr in cidrs:
            ip_network(cidr)
        return cidrs
