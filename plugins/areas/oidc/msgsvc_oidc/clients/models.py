"""Models of clients: internal, and of the API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept, UrlText
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.visible_text import check_visible, one_line
from msgsvc_oidc.protocol.clients import (
    AuthMethod,
    Client,
    ClientSecret,
    GrantType,
    Scope,
    SigningAlg,
    SubjectType,
)

#: Redirect URIs of a client.
MAX_REDIRECT_URIS = 20

#: Secrets of a client that are valid at the same time: the old one works until the new one is installed.
MAX_SECRETS = 2

#: Characters of a client's keys as JSON.
MAX_JWKS_LENGTH = 16_384


def _check_one_line(name: str) -> str:
    """People decide by it: nothing in it is hidden, or changes the order of other letters."""
    if name != one_line(name):
        raise InvalidValue("must be in one line, without invisible characters")
    return check_visible(name)


ClientName = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_check_one_line)]

Uris = Annotated[list[UrlText], Field(max_length=MAX_REDIRECT_URIS)]


@dataclass(frozen=True, slots=True)
class NewClient:
    """A client that was just registered, with its secret, which is shown once; None for one without."""

    client: Client
    secret: str | None = field(repr=False)


def _default_scopes() -> list[Scope]:
    return ["openid", "profile"]


def _default_grant_types() -> list[GrantType]:
    return ["authorization_code", "refresh_token"]


class ClientFields(RequestModel):
    """What can be set when a client is created and later."""

    redirect_uris: Uris = Field(
        default_factory=list, description="Compared character by character."
    )
    post_logout_redirect_uris: Uris = Field(
        default_factory=list, description="Where a browser may return after sign-out."
    )
    backchannel_logout_uri: UrlText | None = Field(
        None, description="Receives signed logout tokens."
    )
    scopes: list[Scope] = Field(
        default_factory=_default_scopes,
        max_length=6,
        description="Scopes that the client may request.",
    )
    grant_types: list[GrantType] = Field(
        default_factory=_default_grant_types, min_length=1, max_length=4
    )
    jwks: dict[str, Any] | None = Field(
        None, description="Public keys as a JWK Set, for `private_key_jwt`."
    )
    jwks_uri: UrlText | None = Field(
        None,
        description="Where such a set is fetched from instead, when the client is registered and "
        "when it signs with a key that is not known, at most once a minute.",
    )
    first_party: bool = Field(False, description="Signs people in without asking for consent.")
    number_matching: bool = Field(
        False, description="Always has the person choose the number that the page shows."
    )
    require_pushed: bool = Field(
        False, description="Accepts authorization requests only if they were pushed."
    )
    home_url: UrlText | None = Field(None, description="The client's site, shown to people.")


class ClientBody(ClientFields):
    """A new client."""

    name: ClientName = Field(description="Shown to people when they sign in.")
    token_endpoint_auth_method: AuthMethod = Field(
        "client_secret_basic", description="`none` for apps, which can't keep a secret."
    )
    subject_type: SubjectType = Field(
        "public", description="Whether `sub` is the subscriber's id, or another one for each host."
    )
    id_token_signed_response_alg: SigningAlg | None = Field(
        None, description="Without it, the setting `oidc.signing_alg`."
    )


class ClientChange(RequestModel):
    """Changes of a client; what is left out stays. A URL of null is removed."""

    name: Kept[ClientName] = None
    redirect_uris: Kept[Uris] = None
    post_logout_redirect_uris: Kept[Uris] = None
    backchannel_logout_uri: UrlText | None = None
    scopes: Kept[list[Scope]] = None
    grant_types: Kept[Annotated[list[GrantType], Field(min_length=1)]] = None
    jwks: Kept[dict[str, Any]] = None
    jwks_uri: Kept[UrlText] = None
    first_party: Kept[bool] = None
    number_matching: Kept[bool] = None
    require_pushed: Kept[bool] = None
    home_url: UrlText | None = None


class ClientAnswer(ResponseModel):
    """A client as the API shows it."""

    client_id: str
    name: str
    issuer: str = Field(
        description="What the client's software asks for as issuer or discovery URL."
    )
    redirect_uris: list[str]
    post_logout_redirect_uris: list[str]
    backchannel_logout_uri: str | None
    token_endpoint_auth_method: AuthMethod
    jwks: dict[str, Any] | None = Field(description="Null for keys that are fetched.")
    jwks_uri: str | None
    grant_types: list[GrantType]
    scopes: list[Scope]
    first_party: bool
    number_matching: bool
    require_pushed: bool
    subject_type: SubjectType
    id_token_signed_response_alg: SigningAlg
    home_url: str | None
    dynamic: bool = Field(description="Whether it was registered by itself.")
    created_at: str

    @classmethod
    def of(cls, client: Client, issuer: str) -> "ClientAnswer":
        return cls(**client_fields(client, issuer))


class NewClientAnswer(ClientAnswer):
    """A new client."""

    leave_out_none = frozenset({"client_secret"})

    client_secret: str | None = Field(description="Shown only now; absent for clients without one.")


class ClientList(ResponseModel):
    """A page of clients, newest first."""

    data: list[ClientAnswer]
    next_cursor: str | None


class ClientQuery(PageQuery):
    """Paging."""


class SecretAnswer(ResponseModel):
    """A new secret; the previous one stays valid until `previous_expires_at`."""

    secret_id: str
    client_secret: str = Field(description="Shown only now.")
    previous_expires_at: str | None


class SecretEntry(ResponseModel):
    """A secret, which can't be shown again."""

    secret_id: str
    created_at: str
    expires_at: str | None

    @classmethod
    def of(cls, secret: ClientSecret) -> "SecretEntry":
        return cls(
            secret_id=secret.secret_id,
            created_at=to_rfc3339(secret.created_at_ms),
            expires_at=optional_rfc3339(secret.expires_at_ms),
        )


class SecretList(ResponseModel):
    """The valid secrets of a client, newest first."""

    data: list[SecretEntry]


def client_fields(client: Client, issuer: str) -> dict[str, Any]:
    """A client in the words of the API."""
    return {
        "client_id": client.client_id,
        "name": client.name,
        "issuer": issuer,
        "redirect_uris": list(client.redirect_uris),
        "post_logout_redirect_uris": list(client.post_logout_redirect_uris),
        "backchannel_logout_uri": client.backchannel_logout_uri,
        "token_endpoint_auth_method": client.auth_method,
        "jwks": None if client.jwks is None or client.jwks_uri else dict(client.jwks),
        "jwks_uri": client.jwks_uri,
        "grant_types": list(client.grant_types),
        "scopes": list(client.scopes),
        "first_party": client.first_party,
        "number_matching": client.number_matching,
        "require_pushed": client.require_pushed,
        "subject_type": client.subject_type,
        "id_token_signed_response_alg": client.signing_alg,
        "home_url": client.home_url,
        "dynamic": client.dynamic,
        "created_at": to_rfc3339(client.created_at_ms),
    }


def as_tuple(values: Sequence[Any]) -> tuple[Any, ...]:
    """Each value once, in the order given."""
    return tuple(dict.fromkeys(values))
