"""Requests to `userinfo`: the access token, and the errors of a protected resource (RFC 6750)."""

from msgsvc_oidc.protocol.errors import OAuthError
from msgsvc_oidc.protocol.parameters import Parameters


def read_bearer(authorization: str | None, form: Parameters | None) -> str:
    """The access token. Raises `OAuthError` without one, or with two (RFC 6750, sections 2 and 3.1)."""
    scheme, _, value = (authorization or "").partition(" ")
    header = value.strip() if scheme.lower() == "bearer" else ""
    posted = "" if form is None else form.get("access_token", "")
    if header and posted:
        raise OAuthError(
            "invalid_request",
            "the access token came in two ways",
            headers={"WWW-Authenticate": 'Bearer error="invalid_request"'},
        )
    token = header or posted
    if not token:
        # A request without any authentication gets no error code in the header (section 3.1).
        raise OAuthError(
            "invalid_token",
            "an access token is needed",
            status=401,
            headers={"WWW-Authenticate": "Bearer"},
        )
    return token
