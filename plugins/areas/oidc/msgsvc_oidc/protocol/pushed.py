"""Pushed authorization requests: the client sends the request itself, and the browser only its reference (RFC
9126)."""

from msgsvc_oidc.protocol.authorize import AuthorizationRequest, read_redirect_uri, read_request
from msgsvc_oidc.protocol.clients import Client
from msgsvc_oidc.protocol.errors import RedirectError, UnusableRequest, invalid_request
from msgsvc_oidc.protocol.parameters import Parameters

#: What a `request_uri` of ours starts with (RFC 9126, section 2.2).
URN = "urn:ietf:params:oauth:request_uri:"


def read_pushed(parameters: Parameters, client: Client) -> AuthorizationRequest:
    """A valid request. Raises `OAuthError`: everything is checked at once, as at the authorization endpoint,
    and only registered redirect URIs are accepted (RFC 9126, section 2.1)."""
    if "request_uri" in parameters:
        raise invalid_request("request_uri can't be pushed")
    try:
        redirect_uri = read_redirect_uri(parameters, client)
    except UnusableRequest as error:
        raise invalid_request(error.reason) from None
    return read_request(parameters, client, redirect_uri, pushed=True)


def request_uri_of(reference: str) -> str:
    """The `request_uri` of a stored request."""
    return URN + reference


def reference_of(request_uri: str) -> str | None:
    """The reference in a `request_uri`; None for one of another kind, e.g. a URL."""
    return request_uri.removeprefix(URN) if request_uri.startswith(URN) else None


def unknown_request_uri() -> RedirectError:
    """A `request_uri` that is not the client's, was used, or has expired (RFC 9101, section 7)."""
    return RedirectError(
        "invalid_request_uri", "request_uri is not of this client, was used before, or has expired"
    )
