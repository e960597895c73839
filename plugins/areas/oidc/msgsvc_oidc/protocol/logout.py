"""Logout that a client starts (OpenID Connect RP-Initiated Logout 1.0), and logout tokens for the others
(OpenID Connect Back-Channel Logout 1.0)."""

from dataclasses import dataclass
from typing import Any, Literal

from msgsvc_oidc.protocol.authorize import MAX_STATE_LENGTH
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import UnusableRequest
from msgsvc_oidc.protocol.id_token_hint import IdTokenHint
from msgsvc_oidc.protocol.parameters import Parameters

#: The member of `events` in a logout token (Back-Channel Logout 1.0, section 2.4).
EVENT = "http://schemas.openid.net/event/backchannel-logout"

#: The header `typ` of a logout token (Back-Channel Logout 1.0, section 2.4).
LOGOUT_TYPE = "logout+jwt"

#: Seconds for which a logout token is valid: it is signed when it is sent, and at most two minutes are
#: recommended (Back-Channel Logout 1.0, section 2.4).
LOGOUT_TOKEN_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutRequest:
    """What a logout request says. `hint` is None without `id_token_hint`, or if it is none of ours."""

    client_id: str | None = None
    hint: IdTokenHint | None = None
    return_uri: str | None = None
    state: str | None = None


def read_logout(parameters: Parameters, hint: IdTokenHint | None) -> LogoutRequest:
    """The request. Raises `UnusableRequest` if `client_id` is not that of the hint (RP-Initiated Logout 1.0,
    section 2)."""
    client_id = parameters.get("client_id")
    if hint is not None:
        if client_id not in {None, hint.client_id}:
            raise UnusableRequest("client_id is not that of id_token_hint")
        client_id = hint.client_id
    if len(parameters.get("state", "")) > MAX_STATE_LENGTH:
        raise UnusableRequest("state is too long")
    return LogoutRequest(
        client_id=client_id,
        hint=hint,
        return_uri=parameters.get("post_logout_redirect_uri"),
        state=parameters.get("state"),
    )


def return_problem(request: LogoutRequest, client: Client | None) -> str | None:
    """Why the browser must not go where the request says; None if it may, or the request says nothing. It
    may go to a URI that the client has registered, character by character (RP-Initiated Logout 1.0,
    section 3). Without a client there is none."""
    if request.client_id is not None and client is None:
        return "client_id is not known here"
    if request.return_uri is None:
        return None
    if client is None:
        return "post_logout_redirect_uri goes with id_token_hint or client_id"
    if request.return_uri not in client.post_logout_redirect_uris:
        return "post_logout_redirect_uri is not registered for this client"
    return None


def logout_step(request: LogoutRequest, session_id: str | None) -> Literal["nothing", "ask", "end"]:
    """What a request does to the browser's session: a hint of that very session ends it; without one the
    person is asked, for any site can send a browser here (RP-Initiated Logout 1.0, sections 2 and 6)."""
    if session_id is None:
        return "nothing"
    named = None if request.hint is None else request.hint.session_id
    return "end" if named == session_id else "ask"


def logout_claims(
    *,
    issuer: str,
    client_id: str,
    subject: str,
    session_id: str | None,
    token_id: str,
    now_ms: int,
) -> dict[str, Any]:
    """The claims of a logout token (Back-Channel Logout 1.0, section 2.4). Without a session it is about all
    of the person's. There is never a `nonce`, so that none is taken for an ID token."""
    now_s = now_ms // 1000
    claims: dict[str, Any] = {
        "iss": issuer,
        "sub": subject,
        "aud": client_id,
        "iat": now_s,
        "exp": now_s + LOGOUT_TOKEN_S,
        "jti": token_id,
        "events": {EVENT: {}},
    }
    if session_id is not None:
        claims["sid"] = session_id
    return claims
