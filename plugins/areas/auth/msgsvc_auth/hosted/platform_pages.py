"""GET /login/{slug}/platform/{channel}, by which a browser leaves for a platform's page, and
/login/_return/{channel}, to which the platform sends it back."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_auth.hosted.cookies import ReturnCookies, Tickets
from msgsvc_auth.hosted.models import Site, Visit
from msgsvc_auth.hosted.rendering import HEADERS, PageTemplates
from msgsvc_auth.hosted.requests import (
    RESUME,
    address,
    is_embedded,
    is_prefetch,
    read_visit,
)
from msgsvc_auth.hosted.service import HostedSignIn
from msgsvc_auth.hosted.sites import Sites
from msgsvc_auth.platforms.models import Arrival
from msgsvc_auth.platforms.visits import PlatformVisits, cookie_ref
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages import page_endpoint
from msgsvc_core.projects.page_brand import set_page_brand


class PlatformPages:
    """The two routes. Both only redirect; errors are shown as a page."""

    def __init__(
        self,
        *,
        hosted: HostedSignIn,
        sites: Sites,
        visits: PlatformVisits,
        texts: Texts,
        tickets: Tickets,
        cookies: ReturnCookies,
        templates: PageTemplates,
    ) -> None:
        self._hosted = hosted
        self._sites = sites
        self._visits = visits
        self._texts = texts
        self._tickets = tickets
        self._cookies = cookies
        self._templates = templates

    def routes(self) -> list[BaseRoute]:
        problem = self._templates.problem
        return [
            Route(
                "/login/_return/{channel}",
                page_endpoint(self.returned, problem),
                methods=["GET"],
            ),
            Route(
                "/login/{slug}/platform/{channel}",
                page_endpoint(self.leave, problem),
                methods=["GET"],
            ),
        ]

    async def leave(self, request: Request) -> Response:
        """Sends the browser of a waiting sign-in to the platform. Any other goes to the page itself."""
        site = await self._sites.get(request.path_params["slug"])
        set_page_brand(request, site.project)
        visit = read_visit(request, self._texts, site)
        return await self._leave(request, site, visit)

    async def returned(self, request: Request) -> Response:
        """Takes the platform's answer from the browser that left for it, and leads it back to its page."""
        query = request.query_params
        # A look without a person must not use up the state.
        if request.method == "HEAD" or is_prefetch(request) or is_embedded(request):
            raise Forbidden("this address is for a browser that comes from the platform")
        state = query.get("state", "")
        arrival = Arrival(
            request.path_params["channel"], state, query.get("code"), query.get("error")
        )
        ref = cookie_ref(state)
        path = await self._visits.arrive(arrival, self._cookies.read(request, ref))
        return _see_other(path)

    async def _leave(self, request: Request, site: Site, visit: Visit) -> Response:
        here = address(request, site, visit, **{RESUME: "1"})
        held = await self._hosted.find(site, self._tickets.read(request, visit.key(site)))
        if held is None or self._hosted.status(held) != "pending" or not _by_the_person(request):
            return _see_other(here)
        departure = await self._visits.leave(held.session, request.path_params["channel"], here)
        response = _see_other(departure.url)
        self._cookies.write(response, request, departure)
        return response


def _by_the_person(request: Request) -> bool:
    """Whether somebody followed the link on our own page: no prefetch, and no other site's link."""
    site = request.headers.get("sec-fetch-site", "none")
    looks = request.method == "HEAD" or is_prefetch(request) or is_embedded(request)
    return site in {"same-origin", "none"} and not looks


def _see_other(location: str) -> Response:
    return RedirectResponse(location, HTTPStatus.SEE_OTHER, HEADERS)
