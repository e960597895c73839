"""Renders the pages of a logout."""

from functools import cached_property
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_core.kernel.i18n import Language, Texts
from msgsvc_core.pages import new_templates, page_headers
from msgsvc_core.projects.page_brand import page_brand
from msgsvc_oidc.authorization.rendering import without_form_action
from msgsvc_oidc.logout.reading import AskedLogout

if TYPE_CHECKING:
    from jinja2 import Environment


class LogoutTemplates:
    """Renders the pages in each supported language."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @cached_property
    def _templates(self) -> "Environment":
        return new_templates("msgsvc_oidc.logout")

    def question(
        self,
        request: Request,
        lang: Language,
        asked: AskedLogout,
        *,
        action: str,
        confirmation: str,
        project_name: str,
    ) -> Response:
        """Asks whether the person wants to sign out. The form is the only way to do it."""
        return self._page(
            request,
            "question.html",
            lang,
            action=action,
            client=asked.client,
            fields=_fields(asked, confirmation),
            problem=asked.problem,
            project_name=project_name,
            # The form's redirect leads to the client, and on from there.
            headers=without_form_action(page_headers()),
        )

    def ended(
        self,
        request: Request,
        lang: Language,
        asked: AskedLogout,
        project_name: str,
        *,
        signed_out: bool,
    ) -> Response:
        """The person is signed out, or stays signed in, and there is nowhere to go."""
        return self._page(
            request,
            "ended.html",
            lang,
            problem=asked.problem,
            project_name=project_name,
            signed_out=signed_out,
        )

    def unusable(
        self, request: Request, lang: Language, reason: str, *, status: int = 400
    ) -> Response:
        """A request that can't be followed. `reason` is for the client's developer."""
        return self._page(request, "unusable_logout.html", lang, status, reason=reason)

    def _page(
        self,
        request: Request,
        template: str,
        lang: Language,
        status: int = 200,
        headers: dict[str, str] | None = None,
        **values: object,
    ) -> Response:
        html = self._templates.get_template(template).render(
            static=f"{request.scope.get('root_path', '')}/oidc/_static",
            lang=lang,
            _=self._texts.into(lang, __name__),
            status=status,
            brand=page_brand(request),
            **values,
        )
        return HTMLResponse(html, status, headers or page_headers())


def _fields(asked: AskedLogout, confirmation: str) -> dict[str, str]:
    """What the form sends along; it is checked again."""
    request = asked.request
    fields = {
        "confirmation": confirmation,
        "client_id": request.client_id,
        "post_logout_redirect_uri": request.return_uri,
        "state": request.state,
    }
    return {name: value for name, value in fields.items() if value is not None}
