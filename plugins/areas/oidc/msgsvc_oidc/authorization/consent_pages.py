"""The consent page: asks the person, and takes the answer."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.pages import page_endpoint
from msgsvc_core.projects.page_brand import set_page_brand
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.questions import ConsentQuestions
from msgsvc_oidc.authorization.rendering import ConsentTemplates
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.endpoints.responses import posted
from msgsvc_oidc.issuers import Issuers


class ConsentPages:
    """Only the browser that started the request, and that has its session, can answer."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        authorizations: Authorizations,
        questions: ConsentQuestions,
        cookies: BrowserCookies,
        templates: ConsentTemplates,
        responses: BrowserResponses,
    ) -> None:
        self._issuers = issuers
        self._authorizations = authorizations
        self._questions = questions
        self._cookies = cookies
        self._templates = templates
        self._responses = responses

    def routes(self) -> list[BaseRoute]:
        path = "/oidc/{project_id}/consent/{request_id}"
        consent = page_endpoint(self.consent, self._responses.problem)
        return [Route(path, consent, methods=["GET", "POST"])]

    async def consent(self, request: Request) -> Response:
        """The question, or by POST its answer."""
        project = await self._issuers.project(request.path_params["project_id"])
        set_page_brand(request, project)
        return await self._consent(request, project.project_id)

    async def _consent(self, request: Request, project_id: str) -> Response:
        request_id = self._responses.own_request(
            request, project_id, request.path_params["request_id"]
        )
        session_id = self._cookies.session(request, project_id)
        if request.method == "POST":
            allowed = (await posted(request)).get("answer") == "allow"
            outcome = await self._authorizations.decide(
                project_id, request_id, session_id, allowed=allowed
            )
            return self._responses.follow(request, project_id, outcome, request_id)
        asked = await self._questions.get(project_id, request_id, session_id)
        return self._templates.consent(request, self._responses.language(request), asked)
