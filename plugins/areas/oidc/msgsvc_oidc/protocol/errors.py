"""Errors of the protocol, as clients see them: `error` and `error_description` (RFC 6749, section 5.2)."""

from collections.abc import Mapping


class OAuthError(Exception):
    """A refused request of a client.

    `error` is a registered code such as `invalid_grant`; `description` is for the client's developer, in
    ASCII without `"` and `\\` (RFC 6749, section 5.2). `status` is that of the HTTP response.
    """

    def __init__(
        self,
        error: str,
        description: str,
        *,
        status: int = 400,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{error}: {description}")
        self.error = error
        self.description = description
        self.status = status
        self.headers = dict(headers or {})

    def body(self) -> dict[str, str]:
        """The JSON object of the response."""
        return {"error": self.error, "error_description": self.description}


class RedirectError(OAuthError):
    """An error that the browser takes to the client's redirect URI (RFC 6749, section 4.1.2.1)."""


class UnusableRequest(Exception):
    """A request that must not be redirected: its client or redirect URI is not known (RFC 6749, section
    4.1.2.1). The person sees an error page with `reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def invalid_client(description: str, *, basic: bool = False) -> OAuthError:
    """Client authentication failed. With `basic`, the client used the header `Authorization`, and the
    response names that scheme (RFC 6749, section 5.2)."""
    headers = {"WWW-Authenticate": 'Basic realm="oidc"'} if basic else {}
    return OAuthError("invalid_client", description, status=401, headers=headers)


def invalid_grant(description: str) -> OAuthError:
    """A code or token that is not valid, expired, revoked, used, or of another client."""
    return OAuthError("invalid_grant", description)


def invalid_request(description: str) -> OAuthError:
    """A missing, repeated or malformed parameter."""
    return OAuthError("invalid_request", description)


def invalid_token(description: str) -> OAuthError:
    """An access token that is not valid (RFC 6750, section 3.1)."""
    challenge = f'Bearer error="invalid_token", error_description="{description}"'
    return OAuthError(
        "invalid_token", description, status=401, headers={"WWW-Authenticate": challenge}
    )
