"""Clients that register themselves: their metadata, and what they are answered (RFC 7591 and 7592; OpenID
Connect Dynamic Client Registration 1.0)."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgsvc_oidc.protocol.clients import CIBA, Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_request
from msgsvc_oidc.protocol.scopes import SCOPES

#: Names of texts in a client's metadata, and what the provider calls them.
_TEXTS = {
    "client_name": "name",
    "client_uri": "home_url",
    "jwks_uri": "jwks_uri",
    "backchannel_logout_uri": "backchannel_logout_uri",
    "token_endpoint_auth_method": "token_endpoint_auth_method",
    "subject_type": "subject_type",
    "id_token_signed_response_alg": "id_token_signed_response_alg",
}

#: Names of lists of texts.
_LISTS = ("redirect_uris", "post_logout_redirect_uris", "grant_types")

#: What only the provider sets; a client that sends it back has misunderstood (RFC 7592, section 2.2).
_PROVIDERS = (
    "registration_access_token",
    "registration_client_uri",
    "client_secret_expires_at",
    "client_id_issued_at",
)

#: Characters of a client's name.
MAX_NAME_LENGTH = 64

#: Without a scope, and for clients that ask for nothing else.
DEFAULT_SCOPES = ("openid", "profile")


def read_metadata(body: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata in the provider's own names, for what it knows; the rest is ignored (RFC 7591, section 2).
    Whether URLs and values are allowed is seen where they are registered.

    There is no name for a client of the project itself: who registers itself is never one. Raises
    `OAuthError`.
    """
    found: dict[str, Any] = {}
    for name, own in _TEXTS.items():
        if body.get(name) is not None:
            found[own] = _text(body, name)
    for name in _LISTS:
        if body.get(name) is not None:
            found[name] = _texts(body, name)
    found.setdefault("grant_types", ["authorization_code"])
    if body.get("jwks") is not None:
        if not isinstance(body["jwks"], dict):
            raise invalid_metadata("jwks must be a JWK Set")
        found["jwks"] = body["jwks"]
    if body.get("require_pushed_authorization_requests") is not None:
        found["require_pushed"] = _flag(body, "require_pushed_authorization_requests")
    found["scopes"] = _scopes(body)
    if not _is_own_site(found):
        del found["home_url"]
    found.setdefault("name", _name_of(found))
    if not found["name"].isprintable():
        # Among them those that turn the direction of a text: people decide by the name.
        raise invalid_metadata("client_name must not hold invisible characters")
    _check_fixed(body)
    _check_sector(found)
    _check_asks_nobody(found)
    return found


def _check_asks_nobody(found: Mapping[str, Any]) -> None:
    """A backchannel request writes to a person: the project decides which software may. An API, which gets no
    tokens, is registered by the project too: it says whose tokens that one introspects."""
    if not found["grant_types"]:
        raise invalid_metadata("grant_types must hold one")
    if CIBA in found["grant_types"]:
        raise invalid_metadata("a client that registers itself can't have people asked (CIBA)")


def check_update(body: Mapping[str, Any], client: Client) -> None:
    """Raises `OAuthError` for a request that names another client, or what only the provider sets (RFC 7592,
    section 2.2)."""
    if body.get("client_id") != client.client_id:
        raise invalid_request("client_id must be that of the registration")
    for name in _PROVIDERS:
        if name in body:
            raise invalid_request(f"{name} is not for the client to set")


def check_unchanged(metadata: Mapping[str, Any], client: Client) -> None:
    """Raises `OAuthError` for a change of what identifies a client and its people: these stay as they were
    registered (RFC 7592, section 2.2, lets the provider refuse)."""
    fixed = {
        "token_endpoint_auth_method": client.auth_method,
        "subject_type": client.subject_type,
        "id_token_signed_response_alg": client.signing_alg,
    }
    for name, registered in fixed.items():
        if metadata.get(name, registered) != registered:
            raise invalid_metadata(f"{name} can't be changed; register another client")


def registration_body(
    client: Client, *, url: str, access_token: str, secret: str | None = None
) -> dict[str, Any]:
    """The client information response (RFC 7591, section 3.2.1). A secret is in the first one alone: later
    the provider knows its digest only."""
    found: dict[str, Any] = {
        "client_id": client.client_id,
        "client_id_issued_at": client.created_at_ms // 1000,
        "registration_access_token": access_token,
        "registration_client_uri": url,
        "client_name": client.name,
        "client_uri": client.home_url,
        "redirect_uris": list(client.redirect_uris),
        "post_logout_redirect_uris": list(client.post_logout_redirect_uris),
        "backchannel_logout_uri": client.backchannel_logout_uri,
        "token_endpoint_auth_method": client.auth_method,
        "grant_types": list(client.grant_types),
        "response_types": ["code"] if "authorization_code" in client.grant_types else [],
        "scope": " ".join(client.scopes),
        "jwks": None if client.jwks is None or client.jwks_uri else dict(client.jwks),
        "jwks_uri": client.jwks_uri,
        "subject_type": client.subject_type,
        "id_token_signed_response_alg": client.signing_alg,
        "require_pushed_authorization_requests": client.require_pushed,
    }
    if secret is not None:
        # It does not expire (RFC 7591, section 3.2.1).
        found |= {"client_secret": secret, "client_secret_expires_at": 0}
    return {name: value for name, value in found.items() if value is not None}


def wire_name(name: str) -> str:
    """What a client calls a field of the provider's."""
    return next((wire for wire, own in _TEXTS.items() if own == name), name)


def invalid_metadata(description: str) -> OAuthError:
    """RFC 7591, section 3.2.2."""
    return OAuthError("invalid_client_metadata", description)


def invalid_redirect_uri(description: str) -> OAuthError:
    """RFC 7591, section 3.2.2."""
    return OAuthError("invalid_redirect_uri", description)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body[name]
    if not isinstance(value, str) or not value or "\0" in value:
        raise invalid_metadata(f"{name} must be a text")
    return value


def _texts(body: Mapping[str, Any], name: str) -> list[str]:
    value = body[name]
    texts = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if not texts or any("\0" in each for each in value):
        wrong = invalid_redirect_uri if name == "redirect_uris" else invalid_metadata
        raise wrong(f"{name} must be a list of texts")
    return list(value)


def _flag(body: Mapping[str, Any], name: str) -> bool:
    value = body[name]
    if not isinstance(value, bool):
        raise invalid_metadata(f"{name} must be true or false")
    return value


def _scopes(body: Mapping[str, Any]) -> list[str]:
    """Those that exist; a client can't sign people in without `openid`, so it has that one anyway."""
    if body.get("scope") is None:
        return list(DEFAULT_SCOPES)
    words = {"openid", *_text(body, "scope").split()}
    return [scope for scope in SCOPES if scope in words]


def _name_of(found: Mapping[str, Any]) -> str:
    """Where people know the client from, for one without a name."""
    urls = [found.get("home_url"), *found.get("redirect_uris", ())]
    hosts = [_host_of(url) for url in urls if url]
    return next((host for host in hosts if host), "App")[:MAX_NAME_LENGTH]


def _check_fixed(body: Mapping[str, Any]) -> None:
    """What the provider does one way only."""
    response_types = body.get("response_types")
    if response_types is not None and not set(_texts(body, "response_types")) <= {"code"}:
        raise invalid_metadata("response_types must be code")
    if body.get("application_type") not in {None, "web", "native"}:
        raise invalid_metadata("application_type must be web or native")
    if body.get("sector_identifier_uri") is not None:
        raise invalid_metadata("sector_identifier_uri is not supported")


def _check_sector(found: Mapping[str, Any]) -> None:
    """People have one `sub` for each host, so a pairwise client has one (OpenID Connect Core 1.0, section
    8.1)."""
    hosts = {_host_of(uri) for uri in found.get("redirect_uris", ())}
    if found.get("subject_type") == "pairwise" and len(hosts) > 1:
        raise invalid_metadata("the redirect URIs of a pairwise client must have one host")


def _is_own_site(found: Mapping[str, Any]) -> bool:
    """Whether the home page is where codes go (RFC 7591, section 5): people decide by its host, and who
    registers itself could name another's."""
    if "home_url" not in found:
        return True
    hosts = {_host_of(uri) for uri in found.get("redirect_uris", ())}
    return hosts == {_host_of(found["home_url"])}


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
