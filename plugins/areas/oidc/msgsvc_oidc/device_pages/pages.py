"""The page on which a person enters the code of their device (RFC 8628, section 3.3)."""

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.pages import page_endpoint
from msgsvc_core.projects.page_brand import set_page_brand
from msgsvc_oidc.authorization.cookies import BrowserCookies
from msgsvc_oidc.authorization.responses import BrowserResponses
from msgsvc_oidc.authorization.service import Authorizations
from msgsvc_oidc.clients.service import Clients
from msgsvc_oidc.device.service import DeviceRequests
from msgsvc_oidc.device_pages.rendering import DeviceTemplates
from msgsvc_oidc.endpoints.client_access import RequestLimit
from msgsvc_oidc.endpoints.responses import posted
from msgsvc_oidc.issuers import Issuers
from msgsvc_oidc.protocol.device import read_user_code, shown_user_code
from msgsvc_oidc.protocol.discovery import DEVICE
from msgsvc_oidc.protocol.parameters import read_query

#: Seconds for which an opened page can be used.
PAGE_S = 3600


class DevicePages:
    """Whoever comes with a code in the URL has to confirm that the device shows it: somebody else may have
    sent the link (RFC 8628, sections 3.3.1 and 5.4). Opening the page tells nothing of the code."""

    def __init__(
        self,
        *,
        issuers: Issuers,
        limit: RequestLimit,
        clients: Clients,
        devices: DeviceRequests,
        authorizations: Authorizations,
        cookies: BrowserCookies,
        responses: BrowserResponses,
        templates: DeviceTemplates,
    ) -> None:
        self._issuers = issuers
        self._limit = limit
        self._clients = clients
        self._devices = devices
        self._authorizations = authorizations
        self._cookies = cookies
        self._responses = responses
        self._templates = templates

    def routes(self) -> list[BaseRoute]:
        device = page_endpoint(self.device, self._responses.problem)
        return [Route("/oidc/{project_id}" + DEVICE, device, methods=["GET", "POST"])]

    async def device(self, request: Request) -> Response:
        """The page, or by POST the code from it."""
        project = await self._issuers.project(request.path_params["project_id"])
        set_page_brand(request, project)
        if request.method == "POST":
            return await self._enter(request, project.project_id, project.public_name)
        code = read_user_code(read_query(request.scope["query_string"]).get("user_code", ""))
        page = self._page(
            request, project.public_name, "" if code is None else shown_user_code(code)
        )
        # A form of another site comes without this cookie, and can't enter a code.
        project_id = project.project_id
        self._cookies.set_started(page, project_id, project_id, PAGE_S)
        return page

    async def _enter(self, request: Request, project_id: str, project_name: str) -> Response:
        self._responses.own_request(request, project_id, project_id)
        typed = (await posted(request)).get("user_code", "")
        code = read_user_code(typed)
        if code is None:
            return self._page(request, project_name, typed, problem="malformed")
        await self._limit.count(request)
        device = await self._devices.find(project_id, code)
        client = None if device is None else await self._clients.find(project_id, device.client_id)
        if device is None or client is None:
            return self._page(request, project_name, shown_user_code(code), problem="unknown")
        outcome = await self._authorizations.begin(
            client,
            replace(device.authorization, ui_locales=(self._responses.language(request),)),
            self._cookies.session(request, project_id),
            device_id=device.request_id,
        )
        return self._responses.follow(request, project_id, outcome)

    def _page(
        self, request: Request, project_name: str, code: str, *, problem: str = ""
    ) -> Response:
        lang = self._responses.language(request)
        return self._templates.code(request, lang, project_name, code, problem=problem)
