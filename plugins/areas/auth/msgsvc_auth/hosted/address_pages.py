"""GET and POST /login/{slug}/address/{channel}: where people type their email address or phone number. It is
a page of its own, since the sign-in page reloads itself where there are no scripts."""

from http import HTTPStatus
from typing import Literal

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from msgsvc_auth.hosted.addresses import MAX_ADDRESS_LENGTH, AddressOffer, AddressQuestions
from msgsvc_auth.hosted.cookies import Tickets
from msgsvc_auth.hosted.models import BrowserSignIn, Site, Visit
from msgsvc_auth.hosted.rendering import HEADERS, SENT, PageTemplates
from msgsvc_auth.hosted.requests import (
    RESUME,
    address,
    client_of,
    is_embedded,
    is_prefetch,
    read_visit,
)
from msgsvc_auth.hosted.service import HostedSignIn
from msgsvc_auth.hosted.sites import Sites
from msgsvc_core.kernel.errors import Forbidden, RateLimitProject, ValidationFailed
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages import page_endpoint
from msgsvc_core.pages.posting import posted_values
from msgsvc_core.projects.page_brand import set_page_brand

#: Bytes of a form's body: an address, and what a browser adds.
FORM_BYTES = 4096

#: What is wrong with what was typed.
Fault = Literal["empty", "invalid", "too_many"]


class AddressPages:
    """The route. The cookie of a sign-in comes with forms of our own pages alone."""

    def __init__(
        self,
        *,
        hosted: HostedSignIn,
        sites: Sites,
        questions: AddressQuestions,
        texts: Texts,
        tickets: Tickets,
        templates: PageTemplates,
    ) -> None:
        self._hosted = hosted
        self._sites = sites
        self._questions = questions
        self._texts = texts
        self._tickets = tickets
        self._templates = templates

    def routes(self) -> list[BaseRoute]:
        return [
            Route(
                "/login/{slug}/address/{channel}",
                page_endpoint(self.page, self._templates.problem),
                methods=["GET", "POST"],
            )
        ]

    async def page(self, request: Request) -> Response:
        """The form, and what was typed into it. A browser without a waiting sign-in goes to its page."""
        site = await self._sites.get(request.path_params["slug"])
        set_page_brand(request, site.project)
        if is_embedded(request) or is_prefetch(request):
            raise Forbidden("this page is for a window of its own")
        visit = read_visit(request, self._texts, site)
        held = await self._hosted.find(site, self._tickets.read(request, visit.key(site)))
        if held is None or self._hosted.status(held) != "pending":
            return _see_other(address(request, site, visit))
        offer = self._questions.get(held.session, request.path_params["channel"])
        if request.method != "POST":
            return self._templates.address(request, site, visit, offer)
        return await self._asked(request, site, visit, held, offer)

    async def _asked(
        self,
        request: Request,
        site: Site,
        visit: Visit,
        held: BrowserSignIn,
        offer: AddressOffer,
    ) -> Response:
        form = await posted_values(request, max_bytes=FORM_BYTES, max_values=4)
        typed = str(form.get("address") or "")[:MAX_ADDRESS_LENGTH].strip()
        fault: Fault | None = None if typed else "empty"
        wait_s = None
        if fault is None:
            try:
                await self._questions.ask(held, offer, typed, client_of(request))
            except ValidationFailed:
                fault = "invalid"
            except RateLimitProject as error:
                fault, wait_s = "too_many", error.retry_after_s
        if fault is None:
            shown = {RESUME: "1", SENT: offer.channel}
            return _see_other(address(request, site, visit, **shown))
        return self._templates.address(
            request, site, visit, offer, typed=typed, fault=fault, wait_s=wait_s
        )


def _see_other(location: str) -> Response:
    return RedirectResponse(location, HTTPStatus.SEE_OTHER, HEADERS)
