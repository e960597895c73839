"""The session cookie, and the CSRF token."""

from msgsvc_core.security.secret_box import SecretBox

SESSION_COOKIE = "msgsvc_session"


def session_cookie(base_url: str) -> str:
    """The name of the cookie. If the service is public over https it starts with `__Host-`: such a cookie
    can only be set by this host, not by a sibling domain."""
    return f"__Host-{SESSION_COOKIE}" if base_url.startswith("https:") else SESSION_COOKIE


#: The field of every form, and the header that htmx sends along.
CSRF_FIELD, CSRF_HEADER = "_csrf", "x-csrf-token"


def csrf_token(secrets: SecretBox, session_id: str) -> str:
    """The CSRF token of the session, which other sites can't know."""
    return secrets.derive("dashboard csrf", session_id).hex()
