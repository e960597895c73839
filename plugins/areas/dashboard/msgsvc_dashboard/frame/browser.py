"""By what a browser shows who is signed in, and that a form is one of ours."""

from msgsvc_core.security.secret_box import SecretBox

SESSION_COOKIE = "msgsvc_session"


def session_cookie(base_url: str) -> str:
    """The name of the cookie. Where the service is public over https it begins with `__Host-`: such a
    cookie comes from this host alone, and no neighbour below the same domain can plant one."""
    return f"__Host-{SESSION_COOKIE}" if base_url.startswith("https:") else SESSION_COOKIE


#: The field of every form, and the header that htmx sends along.
CSRF_FIELD, CSRF_HEADER = "_csrf", "x-csrf-token"


def csrf_token(secrets: SecretBox, session_id: str) -> str:
    """What a page of ours has and another site can't know: it goes with the session."""
    return secrets.derive("dashboard csrf", session_id).hex()
