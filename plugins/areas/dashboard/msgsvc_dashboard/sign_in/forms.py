"""CSRF protection of forms without a session: only those that our page showed to this browser are accepted.

Without it, another site could sign a user in to an account of its own, and have them enter data there.
"""

from starlette.requests import Request

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.ids import new_token
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.frame.browser import CSRF_FIELD
from msgsvc_dashboard.frame.gate import from_here, not_ours
from msgsvc_dashboard.frame.reading import reading
from msgsvc_dashboard.sign_in.cookies import FORM, Cookies

#: Bytes of a form: anybody can send one.
FORM_BYTES = 16 * 1024

_PURPOSE = "dashboard sign-in form"


class Forms:
    """The CSRF token depends on a cookie."""

    def __init__(self, *, secrets: SecretBox, cookies: Cookies) -> None:
        self._secrets = secrets
        self._cookies = cookies

    def begin(self, request: Request) -> tuple[str, str]:
        """The cookie of a page with a form, and the token in the form."""
        nonce = self._cookies.read(request, FORM) or new_token()
        return nonce, self._secrets.sign(_PURPOSE, nonce)

    async def read(self, request: Request) -> PostedForm:
        """Raises `Forbidden` for a form that is none of ours."""
        nonce = self._cookies.read(request, FORM)
        if not nonce or not from_here(request):
            raise not_ours()
        async with reading(request, None, FORM_BYTES) as form:
            given = form.text(CSRF_FIELD)
            if not self._secrets.verify(given, _PURPOSE, nonce):
                raise not_ours()
            return form
