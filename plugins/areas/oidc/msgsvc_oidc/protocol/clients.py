"""Clients as the protocol knows them: their metadata (RFC 7591, section 2) and secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from msgsvc_core.channels import Identity

#: Client authentication at the token endpoint (OpenID Connect Core 1.0, section 9). A client uses the method
#: that it is registered for; one of `client_secret_post` may use the header as well.
AuthMethod = Literal["client_secret_basic", "client_secret_post", "private_key_jwt", "none"]

#: Those of clients with a secret: in the header alone, or in the form as well.
SecretMethod = Literal["client_secret_basic", "client_secret_post"]

GrantType = Literal[
    "authorization_code",
    "refresh_token",
    "urn:ietf:params:oauth:grant-type:device_code",
    "urn:openid:params:grant-type:ciba",
]

#: The grant types with their short names in URLs and forms.
DEVICE_CODE: GrantType = "urn:ietf:params:oauth:grant-type:device_code"
CIBA: GrantType = "urn:openid:params:grant-type:ciba"

Scope = Literal["openid", "profile", "email", "phone", "offline_access", "notify"]

#: `public`: the same `sub` for all clients of the project; `pairwise`: another one for each host (OpenID
#: Connect Core 1.0, section 8).
SubjectType = Literal["public", "pairwise"]

SigningAlg = Literal["RS256", "ES256", "EdDSA"]

#: Keys of a client.
MAX_KEYS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A registered client of a project."""

    project_id: str
    client_id: str
    name: str
    redirect_uris: tuple[str, ...] = ()
    post_logout_redirect_uris: tuple[str, ...] = ()
    backchannel_logout_uri: str | None = None
    auth_method: AuthMethod = "client_secret_basic"
    #: Public keys of `private_key_jwt`, as a JWK Set.
    jwks: Mapping[str, Any] | None = None
    #: Where these keys are fetched from; None for those of the registration itself.
    jwks_uri: str | None = None
    #: When they were last asked for.
    jwks_asked_at_ms: int | None = None
    grant_types: tuple[GrantType, ...] = ("authorization_code", "refresh_token")
    scopes: tuple[Scope, ...] = ("openid", "profile")
    #: Of the project itself: the person is not asked for consent.
    first_party: bool = False
    #: Always asks for the number that the page shows.
    number_matching: bool = False
    #: Only channels that prove one of these sign people in; empty is any.
    must_prove: tuple[Identity, ...] = ()
    #: Takes authorization requests only from the pushed authorization endpoint (RFC 9126, section 6).
    require_pushed: bool = False
    #: Its ID tokens have the claims of the granted scopes too, not only `userinfo`.
    claims_in_id_token: bool = True
    #: Clients whose access tokens it may introspect, besides its own: it is the API that they call.
    introspects: tuple[str, ...] = ()
    subject_type: SubjectType = "public"
    signing_alg: SigningAlg = "RS256"
    #: Shown to people as the client's site.
    home_url: str | None = None
    #: Registered by itself (RFC 7591).
    dynamic: bool = False
    created_at_ms: int

    @property
    def is_public(self) -> bool:
        """Whether it can't keep a secret (RFC 6749, section 2.1)."""
        return self.auth_method == "none"

    @property
    def has_secret(self) -> bool:
        """Whether it authenticates by a secret."""
        return self.auth_method in get_args(SecretMethod)

    @property
    def site(self) -> str:
        """A URL by whose host people recognise the client; empty if it has none."""
        return self.home_url or next((uri for uri in self.redirect_uris if "://" in uri), "")

    @property
    def sectors(self) -> frozenset[str]:
        """The hosts that people's codes go to (OpenID Connect Core 1.0, section 8.1); its own id for an app,
        and without redirect URIs. The home page is none: nobody is signed in there."""
        hosts = {urlsplit(uri).hostname or self.client_id for uri in self.redirect_uris}
        return frozenset(hosts or {self.client_id})

    @property
    def sector(self) -> str:
        """What the `sub` of a pairwise client is of: it has one sector."""
        return min(self.sectors)

    @property
    def row(self) -> tuple[str, str]:
        """Its key in the database."""
        return self.project_id, self.client_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """A secret of a client, of which only the digest is stored."""

    secret_id: str
    digest: str = field(repr=False)
    created_at_ms: int
    #: None for the newest; an older one ends some time after the newer one was made.
    expires_at_ms: int | None
