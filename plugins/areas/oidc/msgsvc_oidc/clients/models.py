"""Models of clients: internal, and of the API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import CreatedAt, Kept, Time, Url, UrlText
from msgsvc_core.channels import Identity
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.visible_text import check_visible, one_line
from msgsvc_oidc.protocol.clients import (
    AuthMethod,
    Client,
    ClientSecret,
    GrantType,
    Scope,
    SecretMethod,
    SigningAlg,
    SubjectType,
)

#: Redirect URIs of a client.
MAX_REDIRECT_URIS = 20

#: Secrets of a client that are valid at the same time: the old one works until the new one is installed.
MAX_SECRETS = 2

#: Clients whose tokens a client may introspect.
MAX_INTROSPECTS = 100

#: Characters of a client's keys as JSON.
MAX_JWKS_LENGTH = 16_384


def _check_one_line(name: str) -> str:
    """People decide by it: nothing in it is hidden, or changes the order of other letters."""
    if name != one_line(name):
        raise InvalidValue("must be in one line, without invisible characters")
    return check_visible(name)


ClientName = Annotated[
    str,
    Field(min_length=1, max_length=64, examples=["The shop"]),
    AfterValidator(_check_one_line),
]

ClientIds = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=MAX_INTROSPECTS)]

Uris = Annotated[list[UrlText], Field(max_length=MAX_REDIRECT_URIS)]

#: What these fields mean, in bodies and responses alike.
_NAME = "Shown to people when they sign in."
_REDIRECT_URIS = (
    "Where people may return after sign-in, compared character by character; 20 at most."
)
_LOGOUT_URIS = "Where a browser may return after sign-out; 20 at most."
_BACKCHANNEL_URI = "Receives signed logout tokens when a session ends; null for none."
_SCOPES = "Scopes that the client may request."
_GRANT_TYPES = (
    "Ways in which the client gets tokens. Empty for an API, which signs nobody in and introspects the"
    " tokens of others."
)
_JWKS = "The client's public keys as a JWK Set (RFC 7517), for `private_key_jwt`."
_JWKS_URI = (
    "The address of such a set instead. The service fetches it at registration, and for an unknown key at"
    " most once a minute."
)
_FIRST_PARTY = "Whether people sign in without a question for consent."
_NUMBER_MATCHING = "Whether people always have to choose the number that the page shows."
_MUST_PROVE = (
    "Only channels that prove one of these sign people in: an `account` on a messenger, access to a"
    " `mailbox`, a `phone` number, an account that a `homeserver` vouches for. Empty: any channel."
)
_REQUIRE_PUSHED = "Whether authorization requests are accepted only if they were pushed (RFC 9126)."
_ID_CLAIMS = (
    "Whether ID tokens have the claims of the granted scopes too. Most software reads a person's name"
    " there; without, it has to ask `userinfo`."
)
_INTROSPECTS = (
    "Ids of other clients whose access tokens this one may introspect (RFC 7662): it is the API that they"
    f" call. {MAX_INTROSPECTS} at most."
)
_AUTH_METHOD = "How it sends its secret. A client without one keeps its way to authenticate."
_HOME_URL = "The client's site, shown to people; null for none."
_SUBJECT_TYPE = (
    "Whether `sub` is the subscriber's id (`public`), or another one for each host of the redirect URIs"
    " (`pairwise`)."
)

#: Values of the examples: the project's issuer, the client's site and its keys.
ISSUER = f"{examples.BASE_URL}/oidc/{examples.PROJECT_ID}"
_CALLBACK, _SIGNED_OUT = f"{examples.SITE_URL}/callback", f"{examples.SITE_URL}/signed-out"
_OTHER_CLIENTS = ["app_032aJdnwzBzV1wYWGbom2Z"]
_BACKCHANNEL, _KEYS = f"{examples.SITE_URL}/oidc/logout", f"{examples.SITE_URL}/jwks.json"
_JWK_SET = {
    "keys": [
        {
            "kty": "OKP",
            "crv": "Ed25519",
            "kid": "2026-03",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        }
    ]
}

ClientId = Annotated[
    str,
    Field(
        description="The client's id, in this API and in OAuth.",
        examples=["app_032aJdnwzBzV1wYWGbom2Z"],
    ),
]
SecretId = Annotated[
    str, Field(description="The secret's id.", examples=["sec_032aJdRwGSW7gotNIxlaKk"])
]
ClientSecretText = Annotated[
    str,
    Field(
        description="The secret itself, which can't be read again.",
        examples=["mos_1gzgge2YiXhwbqjOs8TUDFeVtsmz3pN5vIimttZ9Vjr"],
    ),
]


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
        default_factory=list, description=_REDIRECT_URIS, examples=[[_CALLBACK]]
    )
    post_logout_redirect_uris: Uris = Field(
        default_factory=list, description=_LOGOUT_URIS, examples=[[_SIGNED_OUT]]
    )
    backchannel_logout_uri: UrlText | None = Field(
        None, description=_BACKCHANNEL_URI, examples=[_BACKCHANNEL]
    )
    scopes: list[Scope] = Field(
        default_factory=_default_scopes,
        max_length=6,
        description=_SCOPES,
        examples=[["openid", "profile"]],
    )
    grant_types: list[GrantType] = Field(
        default_factory=_default_grant_types,
        max_length=4,
        description=_GRANT_TYPES,
        examples=[["authorization_code", "refresh_token"]],
    )
    jwks: dict[str, Any] | None = Field(None, description=_JWKS, examples=[_JWK_SET])
    jwks_uri: UrlText | None = Field(None, description=_JWKS_URI, examples=[_KEYS])
    first_party: bool = Field(False, description=_FIRST_PARTY)
    number_matching: bool = Field(False, description=_NUMBER_MATCHING)
    must_prove: list[Identity] = Field(
        default_factory=list, max_length=4, description=_MUST_PROVE, examples=[["phone"]]
    )
    require_pushed: bool = Field(False, description=_REQUIRE_PUSHED)
    claims_in_id_token: bool = Field(True, description=_ID_CLAIMS)
    introspects: ClientIds = Field(
        default_factory=list, description=_INTROSPECTS, examples=[_OTHER_CLIENTS]
    )
    home_url: UrlText | None = Field(None, description=_HOME_URL, examples=[examples.SITE_URL])


class CreateOidcClientBody(ClientFields):
    """A new client."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"name": "The shop", "redirect_uris": [_CALLBACK], "home_url": examples.SITE_URL},
                {
                    "name": "The shop's app",
                    "redirect_uris": ["com.example.shop:/callback"],
                    "token_endpoint_auth_method": "none",
                    "scopes": ["openid", "profile", "offline_access"],
                },
                {"name": "The shop's API", "grant_types": [], "introspects": [*_OTHER_CLIENTS]},
            ]
        }
    )

    name: ClientName = Field(description=_NAME)
    token_endpoint_auth_method: AuthMethod = Field(
        "client_secret_basic",
        description="How it authenticates. A secret may always come in the header, and in the form only with"
        " `client_secret_post`; `none` is for apps, which can't keep a secret.",
    )
    subject_type: SubjectType = Field("public", description=_SUBJECT_TYPE)
    id_token_signed_response_alg: SigningAlg | None = Field(
        None,
        description="Algorithm that its ID tokens are signed with; by default the setting"
        " `oidc.signing_alg`.",
        examples=["ES256"],
    )


class UpdateOidcClientBody(RequestModel):
    """Changes of a client; omitted fields stay unchanged, and null removes a URL."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"redirect_uris": [_CALLBACK], "home_url": None}]}
    )

    name: Kept[ClientName] = Field(None, description=_NAME)
    redirect_uris: Kept[Uris] = Field(None, description=_REDIRECT_URIS, examples=[[_CALLBACK]])
    post_logout_redirect_uris: Kept[Uris] = Field(
        None, description=_LOGOUT_URIS, examples=[[_SIGNED_OUT]]
    )
    backchannel_logout_uri: UrlText | None = Field(
        None, description=_BACKCHANNEL_URI, examples=[_BACKCHANNEL]
    )
    scopes: Kept[list[Scope]] = Field(None, description=_SCOPES, examples=[["openid", "profile"]])
    grant_types: Kept[list[GrantType]] = Field(
        None, description=_GRANT_TYPES, examples=[["authorization_code", "refresh_token"]]
    )
    jwks: Kept[dict[str, Any]] = Field(
        None, description=f"{_JWKS} Replaces a `jwks_uri`.", examples=[_JWK_SET]
    )
    jwks_uri: Kept[UrlText] = Field(None, description=_JWKS_URI, examples=[_KEYS])
    first_party: Kept[bool] = Field(None, description=_FIRST_PARTY)
    number_matching: Kept[bool] = Field(None, description=_NUMBER_MATCHING)
    must_prove: Kept[Annotated[list[Identity], Field(max_length=4)]] = Field(
        None, description=_MUST_PROVE, examples=[["phone"]]
    )
    require_pushed: Kept[bool] = Field(None, description=_REQUIRE_PUSHED)
    claims_in_id_token: Kept[bool] = Field(None, description=_ID_CLAIMS)
    introspects: Kept[ClientIds] = Field(None, description=_INTROSPECTS, examples=[_OTHER_CLIENTS])
    token_endpoint_auth_method: Kept[SecretMethod] = Field(None, description=_AUTH_METHOD)
    home_url: UrlText | None = Field(None, description=_HOME_URL, examples=[examples.SITE_URL])


class OidcClientAnswer(ResponseModel):
    """A client as the API shows it."""

    client_id: ClientId
    name: str = Field(description=_NAME, examples=["The shop"])
    issuer: Url = Field(
        description="What the client's software asks for as issuer or discovery URL.",
        examples=[ISSUER],
    )
    redirect_uris: list[str] = Field(description=_REDIRECT_URIS, examples=[[_CALLBACK]])
    post_logout_redirect_uris: list[str] = Field(description=_LOGOUT_URIS, examples=[[_SIGNED_OUT]])
    backchannel_logout_uri: Url | None = Field(
        description=_BACKCHANNEL_URI, examples=[_BACKCHANNEL]
    )
    token_endpoint_auth_method: AuthMethod = Field(
        description="How it authenticates; `none` without a secret."
    )
    jwks: dict[str, Any] | None = Field(
        description=f"{_JWKS} Null without keys, and for keys that are fetched.", examples=[None]
    )
    jwks_uri: Url | None = Field(
        description="Where its public keys are fetched from; null if they are not.", examples=[None]
    )
    grant_types: list[GrantType] = Field(
        description=_GRANT_TYPES, examples=[["authorization_code", "refresh_token"]]
    )
    scopes: list[Scope] = Field(description=_SCOPES, examples=[["openid", "profile"]])
    first_party: bool = Field(description=_FIRST_PARTY)
    number_matching: bool = Field(description=_NUMBER_MATCHING)
    must_prove: list[Identity] = Field(description=_MUST_PROVE, examples=[["phone"]])
    require_pushed: bool = Field(description=_REQUIRE_PUSHED)
    claims_in_id_token: bool = Field(description=_ID_CLAIMS)
    introspects: list[str] = Field(description=_INTROSPECTS, examples=[_OTHER_CLIENTS])
    subject_type: SubjectType = Field(description=_SUBJECT_TYPE)
    id_token_signed_response_alg: SigningAlg = Field(
        description="Algorithm that its ID tokens are signed with."
    )
    home_url: Url | None = Field(description=_HOME_URL, examples=[examples.SITE_URL])
    dynamic: bool = Field(
        description="Whether software registered it, with a registration token.", examples=[False]
    )
    created_at: CreatedAt

    @classmethod
    def of(cls, client: Client, issuer: str) -> "OidcClientAnswer":
        return cls(**client_fields(client, issuer))


class NewOidcClientAnswer(OidcClientAnswer):
    """A new client."""

    leave_out_none = frozenset({"client_secret"})

    client_secret: str | None = Field(
        description="The client's secret, which can't be read again; absent for clients without one.",
        examples=["mos_1gzgge2YiXhwbqjOs8TUDFeVtsmz3pN5vIimttZ9Vjr"],
    )


class OidcClientList(ResponseModel):
    """A page of clients, newest first."""

    data: list[OidcClientAnswer] = Field(description="The clients of this page.")
    next_cursor: NextCursor


class ClientQuery(PageQuery):
    """Paging."""


class NewOidcClientSecretAnswer(ResponseModel):
    """A new secret; the previous one stays valid until `previous_valid_until`."""

    secret_id: SecretId
    client_secret: ClientSecretText
    previous_valid_until: Time | None = Field(
        description="Until when the previous secret is valid; null if there was none.",
        examples=[examples.LATER],
    )


class OidcClientSecretAnswer(ResponseModel):
    """A secret, which can't be shown again."""

    secret_id: SecretId
    created_at: CreatedAt
    expires_at: Time | None = Field(
        description="Until when it is valid; null if it does not expire.", examples=[None]
    )

    @classmethod
    def of(cls, secret: ClientSecret) -> "OidcClientSecretAnswer":
        return cls(
            secret_id=secret.secret_id,
            created_at=to_rfc3339(secret.created_at_ms),
            expires_at=optional_rfc3339(secret.expires_at_ms),
        )


class SecretQuery(PageQuery):
    """Paging."""


class OidcClientSecretList(ResponseModel):
    """A page of the valid secrets of a client, newest first."""

    data: list[OidcClientSecretAnswer] = Field(description="The secrets of this page.")
    next_cursor: NextCursor


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
        "must_prove": list(client.must_prove),
        "require_pushed": client.require_pushed,
        "claims_in_id_token": client.claims_in_id_token,
        "introspects": list(client.introspects),
        "subject_type": client.subject_type,
        "id_token_signed_response_alg": client.signing_alg,
        "home_url": client.home_url,
        "dynamic": client.dynamic,
        "created_at": to_rfc3339(client.created_at_ms),
    }


def as_tuple(values: Sequence[Any]) -> tuple[Any, ...]:
    """Each value once, in the order given."""
    return tuple(dict.fromkeys(values))
