"""The token endpoint: which grant a code or refresh token opens, and what the client gets (RFC 6749, sections
4.1.3 and 6; OpenID Connect Core 1.0, sections 3.1.3 and 12; RFC 9700, section 4.14)."""

import base64
import hashlib
import hmac
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.channels import Identity
from msgsvc_core.plugins.sign_ins import SignInMethod
from msgsvc_oidc.protocol.authentication import acr_of, amr_of
from msgsvc_oidc.protocol.errors import OAuthError, invalid_grant, invalid_request
from msgsvc_oidc.protocol.parameters import Parameters

#: RFC 7636, section 4.1.
_VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a person allowed a client: the codes and tokens of a sign-in refer to it, and end with it."""

    project_id: str
    grant_id: str
    client_id: str
    subscriber_id: str
    subject: str
    scopes: tuple[str, ...]
    auth_time_ms: int
    method: SignInMethod
    created_at_ms: int
    proves: Identity | None = None
    #: The browser's session; None for devices and backchannel requests.
    session_id: str | None = None
    nonce: str | None = None
    redirect_uri: str | None = None
    code_challenge: str | None = None
    #: When its code expires; None for grants without one.
    code_expires_at_ms: int | None = None
    code_used_at_ms: int | None = None
    #: The number of the refresh token that is valid now, from 1; 0 while there is none.
    refresh_number: int = 0
    #: When the refresh token was last rotated.
    refreshed_at_ms: int | None = None
    refresh_expires_at_ms: int | None = None
    revoked_at_ms: int | None = None

    @property
    def is_offline(self) -> bool:
        """Whether the client gets refresh tokens."""
        return "offline_access" in self.scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRequest:
    """A code that a client presents, with what else proves that it is the client's."""

    project_id: str
    client_id: str
    grant_id: str
    redirect_uri: str | None
    verifier: str | None = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """A refresh token that a client presents: its grant, and its number in the line of tokens.

    `must_prove` and `may_have` are what the client asks for and may have now, which may have changed since.
    """

    project_id: str
    client_id: str
    grant_id: str
    number: int
    scopes: tuple[str, ...] | None = None
    must_prove: tuple[Identity, ...] = ()
    may_have: tuple[str, ...] | None = None


class Replayed(Exception):
    """A code or refresh token came a second time: the whole grant has to be revoked."""


def read_verifier(parameters: Parameters) -> str | None:
    """The PKCE verifier. Raises `OAuthError` for one that can't be."""
    verifier = parameters.get("code_verifier")
    if verifier is not None and not _VERIFIER.fullmatch(verifier):
        raise invalid_request("code_verifier must be 43-128 unreserved characters")
    return verifier


def check_code(grant: Grant | None, request: CodeRequest, now_ms: int) -> Grant:
    """The grant of a code. Raises `OAuthError`, and `Replayed` for a code that was used before.

    Whatever is wrong, a code of another client is not touched: that client's own request must still work.
    """
    if grant is None or grant.client_id != request.client_id or grant.code_expires_at_ms is None:
        raise _not_of_this_client()
    if grant.code_used_at_ms is not None:
        raise Replayed
    if grant.revoked_at_ms is not None:
        raise invalid_grant("the code was revoked")
    if now_ms >= grant.code_expires_at_ms:
        raise invalid_grant("the code has expired")
    check_code_request(grant, request)
    return grant


def check_code_request(grant: Grant, request: CodeRequest) -> None:
    """Raises `OAuthError` unless the request is one for the code of that grant, whatever its state."""
    if grant.client_id != request.client_id:
        raise _not_of_this_client()
    if grant.redirect_uri != request.redirect_uri:
        raise invalid_grant("redirect_uri is not that of the authorization request")
    _check_verifier(grant.code_challenge, request.verifier)


def check_refresh(
    grant: Grant | None, request: RefreshRequest, now_ms: int, *, reuse_ms: int
) -> tuple[Grant, bool]:
    """The grant of a refresh token, and whether the token has to be rotated.

    The token before the current one is accepted again for `reuse_ms` after the rotation, and answered with
    the current one: a phone that lost the response asks again. Any other token that was rotated is a stolen
    one, or a thief has the current one. Raises `OAuthError`, and `Replayed` then.
    """
    if grant is None or grant.client_id != request.client_id:
        raise invalid_grant("the refresh token is not valid for this client")
    if grant.revoked_at_ms is not None:
        raise invalid_grant("the refresh token was revoked")
    if not 1 <= request.number <= grant.refresh_number:
        raise invalid_grant("the refresh token is not valid")
    if grant.refresh_expires_at_ms is not None and now_ms >= grant.refresh_expires_at_ms:
        raise invalid_grant("the refresh token has expired")
    if request.must_prove and grant.proves not in request.must_prove:
        raise invalid_grant("the sign-in did not prove what the client asks for now")
    if request.may_have is not None and "offline_access" not in request.may_have:
        raise invalid_grant("the client may not use refresh tokens any more")
    if request.scopes is not None and not set(request.scopes) <= set(grant.scopes):
        raise OAuthError("invalid_scope", "scope exceeds what was granted")
    if request.number == grant.refresh_number:
        return grant, True
    rotated_at_ms = grant.refreshed_at_ms or 0
    # Without an interval nothing is a repetition, even if the clock of who rotated it is ahead of ours.
    within = reuse_ms > 0 and now_ms < rotated_at_ms + reuse_ms
    if request.number == grant.refresh_number - 1 and within:
        return grant, False
    raise Replayed


def id_token_claims(
    grant: Grant,
    *,
    issuer: str,
    now_ms: int,
    lifetime_s: int,
    access_token: str,
    alg: str,
    person: Mapping[str, object],
) -> dict[str, Any]:
    """The claims of an ID token (OpenID Connect Core 1.0, section 2), with those of the person, if any."""
    now_s = now_ms // 1000
    claims: dict[str, Any] = {
        **person,
        "iss": issuer,
        "sub": grant.subject,
        "aud": grant.client_id,
        "exp": now_s + lifetime_s,
        "iat": now_s,
        "auth_time": grant.auth_time_ms // 1000,
        "acr": acr_of(grant.method),
        "at_hash": left_half_hash(access_token, alg),
    }
    if amr := amr_of(grant.method, grant.proves):
        claims["amr"] = amr
    if grant.nonce is not None:
        claims["nonce"] = grant.nonce
    if grant.session_id is not None:
        claims["sid"] = grant.session_id
    return claims


def left_half_hash(text: str, alg: str) -> str:
    """The left half of a token's hash (OpenID Connect Core 1.0, section 3.1.3.6). EdDSA with Ed25519 hashes
    by SHA-512."""
    digest = hashlib.sha512 if alg == "EdDSA" else hashlib.sha256
    hashed = digest(text.encode()).digest()
    return base64.urlsafe_b64encode(hashed[: len(hashed) // 2]).rstrip(b"=").decode()


def narrowed(
    granted: Collection[str], requested: tuple[str, ...] | None, may_have: Collection[str]
) -> tuple[str, ...]:
    """The scopes of an access token: those that were granted and that the client may still have, or of them
    those that a refresh asks for."""
    return tuple(
        scope
        for scope in granted
        if scope == "openid" or (scope in may_have and (requested is None or scope in requested))
    )


def _not_of_this_client() -> OAuthError:
    return invalid_grant("the code is not valid for this client")


def _check_verifier(challenge: str | None, verifier: str | None) -> None:
    if challenge is None:
        # A challenge was stripped from the authorization request, or an attacker's code was put into the
        # client's flow (RFC 9700, section 2.1.1).
        if verifier is not None:
            raise invalid_grant("code_verifier without code_challenge in the authorization request")
        return
    if verifier is None:
        raise invalid_grant("code_verifier is missing")
    digest = hashlib.sha256(verifier.encode()).digest()
    expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if not hmac.compare_digest(expected, challenge):
        raise invalid_grant("code_verifier does not match code_challenge")
