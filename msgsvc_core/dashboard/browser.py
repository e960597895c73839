"""By what a browser shows who is signed in, and that a form is one of ours."""

from msgsvc_core.security.secret_box import SecretBox

SESSION_COOKIE = "msgsvc_session"

#: The field of every form, and the header that htmx sends along.
CSRF_FIELD, CSRF_HEADER = "_csrf", "x-csrf-token"


def csrf_token(secrets: SecretBox, session_id: str) -> str:
    """What a page of ours has and another site can't know: it goes with the session."""
    return secrets.derive("dashboard csrf", session_id).hex()
