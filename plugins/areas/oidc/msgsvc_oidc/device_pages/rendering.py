"""Renders the page for the code of a device."""

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_core.kernel.i18n import Language, Texts
from msgsvc_core.pages import new_templates, page_headers
from msgsvc_core.projects.page_brand import page_brand
from msgsvc_oidc.protocol.device import MAX_TYPED_LENGTH, USER_CODE_LENGTH, read_user_code

if TYPE_CHECKING:
    from jinja2 import Environment


class DeviceTemplates:
    """Renders it in each supported language."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_oidc.device_pages")

    def code(
        self, request: Request, lang: Language, project_name: str, code: str, *, problem: str
    ) -> Response:
        """Asks for the code, or for a press if it is known. `problem` is `malformed` or `unknown` after
        a code that is not valid."""
        known = not problem and read_user_code(code) is not None
        html = self._templates.get_template("confirm.html" if known else "enter.html").render(
            static=f"{request.scope.get('root_path', '')}/oidc/_static",
            lang=lang,
            _=self._texts.into(lang, __name__),
            brand=page_brand(request),
            project_name=project_name,
            code=code[:MAX_TYPED_LENGTH],
            problem=problem,
            # A hyphen, and a space at either end from the clipboard.
            max_length=USER_CODE_LENGTH + 3,
            languages={each: _url(each, code if known else "") for each in self._texts.spoken},
        )
        return HTMLResponse(html, 400 if problem else 200, page_headers())


def _url(lang: str, code: str) -> str:
    return "?" + urlencode({"lang": lang, **({"user_code": code} if code else {})})
