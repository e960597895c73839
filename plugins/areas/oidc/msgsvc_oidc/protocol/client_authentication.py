"""Client authentication (RFC 6749, section 2.3; OpenID Connect Core 1.0, section 9; RFC 7521 and 7523 for
signed assertions)."""

import base64
import binascii
import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_plus

from msgsvc_core.kernel.json import read_json
from msgsvc_core.security import digest
from msgsvc_oidc.protocol.clients import Client, ClientSecret
from msgsvc_oidc.protocol.errors import OAuthError, invalid_client, invalid_request
from msgsvc_oidc.protocol.keys import verified_claims
from msgsvc_oidc.protocol.parameters import Parameters

#: RFC 7523, section 2.2.
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

#: Algorithms of assertions. Never `none`, and none with a shared secret.
ASSERTION_ALGORITHMS = ("RS256", "ES256", "PS256", "EdDSA", "Ed25519")

#: Seconds by which clocks may differ.
LEEWAY_S = 30

#: Seconds for which an assertion may be valid at most: its id is remembered for as long.
MAX_ASSERTION_S = 3600

#: Characters of an assertion's id.
MAX_ASSERTION_ID = 255

Way = Literal["basic", "post", "assertion", "none"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request says about its client."""

    client_id: str
    way: Way
    secret: str | None = field(default=None, repr=False)
    assertion: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Assertion:
    """The id of a valid assertion, which works once, until the time at which it expires."""

    assertion_id: str
    expires_at_ms: int


def read_credentials(authorization: str | None, parameters: Parameters) -> Credentials:
    """The client's credentials. Raises `OAuthError` for none, several, or malformed ones: a request must not
    use more than one method (RFC 6749, section 2.3)."""
    found = [
        each
        for each in (
            _basic(authorization),
            _assertion(parameters),
            _post(parameters),
        )
        if each is not None
    ]
    if len(found) > 1:
        raise invalid_request("the client authenticates in more than one way")
    client_id = parameters.get("client_id")
    if not found:
        if client_id is None:
            # A header of another scheme is answered with the one that is supported.
            raise invalid_client("the client does not say who it is", basic=bool(authorization))
        return Credentials(client_id, "none")
    if client_id is not None and client_id != found[0].client_id:
        raise invalid_request("client_id is another one than in the client authentication")
    return found[0]


def check_credentials(
    client: Client,
    secrets: Sequence[ClientSecret],
    given: Credentials,
    *,
    now_ms: int,
    audiences: Collection[str],
) -> Assertion | None:
    """Raises `OAuthError` unless they are the client's. Returns the assertion that was used, if any.

    `audiences` are the values of `aud` that name the provider: its issuer, and its token endpoint.
    """
    basic = given.way == "basic"
    if client.auth_method == "none":
        if given.way != "none":
            raise invalid_client("the client has no secret", basic=basic)
        return None
    if client.auth_method == "private_key_jwt":
        if given.assertion is None:
            raise invalid_client("the client must authenticate by private_key_jwt", basic=basic)
        return _check_assertion(client, given.assertion, now_ms, audiences)
    if given.secret is None:
        raise invalid_client("the client must authenticate by its secret", basic=basic)
    if given.way == "post" and client.auth_method != "client_secret_post":
        # The header is for every client with a secret; the form only for those that can't use it (RFC 6749,
        # section 2.3.1).
        raise invalid_client("the client is registered for client_secret_basic, and used the form")
    offered = digest(given.secret)
    valid = [
        hmac.compare_digest(offered, each.digest)
        for each in secrets
        if each.expires_at_ms is None or now_ms < each.expires_at_ms
    ]
    if not any(valid):
        raise invalid_client("the client secret is wrong, or has expired", basic=basic)
    return None


def names_unknown_key(client: Client, assertion: str) -> bool:
    """Whether an assertion may be signed by a key that the client has published since its keys were
    fetched."""
    if client.jwks_uri is None:
        return False
    known = [key.get("kid") for key in (client.jwks or {}).get("keys", [])]
    key_id = _unverified(assertion, 0).get("kid")
    return key_id is None or key_id not in known


def _basic(authorization: str | None) -> Credentials | None:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode()
        # Both halves are encoded as in a form (RFC 6749, section 2.3.1).
        client_id, separator, secret = map(unquote_plus, decoded.partition(":"))
    except (binascii.Error, UnicodeDecodeError):
        raise invalid_client("the header Authorization is malformed", basic=True) from None
    if not separator or "\0" in client_id:
        raise invalid_client("the header Authorization is malformed", basic=True)
    return Credentials(client_id, "basic", secret=secret)


def _post(parameters: Parameters) -> Credentials | None:
    secret = parameters.get("client_secret")
    if secret is None:
        return None
    return Credentials(parameters.required("client_id"), "post", secret=secret)


def _assertion(parameters: Parameters) -> Credentials | None:
    assertion = parameters.get("client_assertion")
    if assertion is None:
        return None
    if parameters.get("client_assertion_type") != ASSERTION_TYPE:
        raise invalid_request("client_assertion_type is not supported")
    client_id = parameters.get("client_id") or _unverified_subject(assertion)
    if client_id is None:
        raise invalid_client("the client assertion is malformed")
    return Credentials(client_id, "assertion", assertion=assertion)


def _unverified_subject(assertion: str) -> str | None:
    """Whose keys are needed to verify an assertion that comes without `client_id`."""
    subject = _unverified(assertion, 1).get("sub")
    return subject if isinstance(subject, str) and _is_storable(subject) else None


def _unverified(assertion: str, part: int) -> Mapping[str, Any]:
    """The header (0) or claims (1) of a JWT, as anybody may have written them; empty for what is none."""
    try:
        text = assertion.split(".")[part]
        found = read_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (IndexError, TypeError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _check_assertion(
    client: Client, assertion: str, now_ms: int, audiences: Collection[str]
) -> Assertion:
    keys = (client.jwks or {}).get("keys", [])
    claims = verified_claims(assertion, keys, ASSERTION_ALGORITHMS)
    if claims is None:
        raise invalid_client("the client assertion is not signed by a key of the client")
    problem = _assertion_problem(claims, client.client_id, now_ms // 1000, audiences)
    if problem is not None:
        raise invalid_client(f"client assertion: {problem}")
    return Assertion(claims["jti"], int(claims["exp"] + LEEWAY_S) * 1000)


def _assertion_problem(
    claims: Mapping[str, Any], client_id: str, now_s: int, audiences: Collection[str]
) -> str | None:
    """RFC 7523, section 3."""
    expires, not_before, identity = claims.get("exp"), claims.get("nbf", 0), claims.get("jti")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if claims.get("iss") != client_id or claims.get("sub") != client_id:
        return "iss and sub must be the client_id"
    if not any(each in audiences for each in named if isinstance(each, str)):
        return "aud must be the issuer"
    if not now_s - LEEWAY_S < _seconds(expires) <= now_s + MAX_ASSERTION_S:
        return "exp is missing, past, or more than an hour ahead"
    if not 0 <= _seconds(not_before) <= now_s + LEEWAY_S:
        return "nbf is ahead"
    if not isinstance(identity, str) or not 0 < len(identity) <= MAX_ASSERTION_ID:
        return "jti is missing or too long"
    return None if _is_storable(identity) else "jti is malformed"


def _is_storable(text: str) -> bool:
    """JSON can hold what no database takes: a NUL, and halves of characters."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _seconds(value: Any) -> float:
    """A NumericDate (RFC 7519, section 2); -1 for what is none."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else -1


def check_grant_type(client: Client, grant_type: str) -> None:
    """Raises `OAuthError` unless the client may use it (RFC 6749, section 5.2)."""
    if grant_type not in client.grant_types:
        raise OAuthError("unauthorized_client", "the client may not use this grant type")
