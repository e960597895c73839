"""Polling the token endpoint for an answer that the person gives elsewhere (RFC 8628, sections 3.4 and 3.5;
OpenID Connect CIBA Core 1.0, sections 10.1 and 11)."""

from dataclasses import dataclass
from typing import Literal, TypeVar

from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import OAuthError, invalid_grant
from msgsvc_oidc.protocol.parameters import Parameters
from msgsvc_oidc.protocol.scopes import known_scopes

#: Seconds that a poll before its time adds to the interval (RFC 8628, section 3.5).
SLOW_DOWN_S = 5

#: Milliseconds by which a poll may come early: a client's timer and the network are not exact.
POLL_LEEWAY_MS = 500

#: `approved` waits for the client to fetch its tokens; `used` is after that.
PolledStatus = Literal["pending", "approved", "denied", "expired", "used"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledRequest:
    """A request for which the client polls."""

    project_id: str
    request_id: str
    client_id: str
    status: PolledStatus
    scopes: tuple[str, ...]
    #: Seconds that the client has to wait between polls.
    interval_s: int
    expires_at_ms: int


P = TypeVar("P", bound=PolledRequest)


def check_poll(found: P | None, client_id: str, now_ms: int) -> P:
    """The request, if it is still pending or was approved. Raises `OAuthError` with what became of it.

    A request of another client is as one that does not exist.
    """
    if found is None or found.client_id != client_id:
        raise invalid_grant("the code is not valid for this client")
    if found.status == "used":
        raise code_used()
    if found.status == "denied":
        raise access_denied()
    if found.status == "expired" or now_ms >= found.expires_at_ms:
        raise expired_token()
    return found


def requested_scopes(parameters: Parameters, client: Client) -> tuple[str, ...]:
    """The scopes of a request. Raises `OAuthError` without `openid`: nothing here is done without a
    sign-in."""
    scopes = known_scopes(parameters.words("scope"), client.scopes)
    if "openid" not in scopes:
        raise OAuthError("invalid_scope", "scope must hold openid")
    if "refresh_token" not in client.grant_types:
        return tuple(scope for scope in scopes if scope != "offline_access")
    return scopes


def code_used() -> OAuthError:
    """A poll after the one that got the tokens. These stay valid: both may have been under way together."""
    return invalid_grant("the code was used before")


def access_denied() -> OAuthError:
    """The person refused."""
    return OAuthError("access_denied", "the person did not allow it")


def expired_token() -> OAuthError:
    """Nobody answered in time, or the client did not fetch the answer in time."""
    return OAuthError("expired_token", "the request has expired")


def authorization_pending() -> OAuthError:
    """The person has not answered yet."""
    return OAuthError("authorization_pending", "the person has not answered yet")


def slow_down(interval_s: int) -> OAuthError:
    """The person has not answered yet, and the client asks too often."""
    return OAuthError("slow_down", f"poll every {interval_s} seconds at most")
