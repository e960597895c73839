"""GET and POST /login/{slug} and /login/req_{token}, the status for their script, and the script for sites'
own buttons."""

import re
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from msgsvc_auth.hosted.addresses import AddressQuestions
from msgsvc_auth.hosted.cookies import Tickets
from msgsvc_auth.hosted.models import BrowserSignIn, Site
from msgsvc_auth.hosted.rendering import HEADERS, PageTemplates, Shown
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
from msgsvc_auth.models import MAX_WAIT_S
from msgsvc_auth.platforms.visits import PlatformVisits
from msgsvc_core.kernel.errors import BadRequest, Forbidden, NotFound
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.pages import page_endpoint, static_files
from msgsvc_core.projects.page_brand import set_page_brand

STATIC = Path(__file__).parent / "static"

_SECONDS = re.compile(r"[0-9]{1,4}")

#: Seconds for which a status is held while a platform is asked: a failure there wakes nobody.
CHECKING_WAIT_S = 2

#: Final states, shown once: the next visit starts a new sign-in.
ENDED = ("denied", "expired")


class HostedPages:
    """The routes. A slug has no `_` or `.`, so paths with one never conflict with a site."""

    def __init__(
        self,
        *,
        hosted: HostedSignIn,
        sites: Sites,
        visits: PlatformVisits,
        questions: AddressQuestions,
        texts: Texts,
        tickets: Tickets,
        templates: PageTemplates,
    ) -> None:
        self._hosted = hosted
        self._sites = sites
        self._visits = visits
        self._questions = questions
        self._texts = texts
        self._tickets = tickets
        self._templates = templates

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/login/button.js", self.button, methods=["GET"]),
            Mount("/login/_static", static_files(STATIC)),
            Route("/login/{slug}/status", self.status, methods=["GET"]),
            Route(
                "/login/{slug}",
                page_endpoint(self.page, self._templates.problem),
                methods=["GET", "POST"],
            ),
        ]

    async def page(self, request: Request) -> Response:
        """The sign-in page of a static link or a request. Errors are shown as a page."""
        site = await self._sites.get(request.path_params["slug"])
        set_page_brand(request, site.project)
        if request.method == "HEAD" or is_prefetch(request):
            return _nothing_begun(request)
        if is_embedded(request):
            raise Forbidden("this page is for a window of its own")
        if request.method == "POST":
            return await self._restart(request, site)
        return await self._show(request, site)

    async def status(self, request: Request) -> Response:
        """Status of this browser's sign-in, for the element `<msgsvc-signin>` of the sign-in page.

        `{"status": ..., "expires_in": s}`, and `redirect` once it is confirmed. `changed` says that the
        page is out of date, `done` that another tab has continued to the site. 404 without the cookie.
        With `checking=1`, a page is out of date as soon as no platform is being asked any more.
        """
        site = await self._sites.get(request.path_params["slug"])
        key = request.query_params.get("key", "")
        held = await self._hosted.find(site, self._tickets.read(request, key))
        if held is None:
            raise NotFound("no sign-in was begun by this browser")
        if request.query_params.get("page") != held.ticket.page:
            return _json({"status": "changed"})
        checks = request.query_params.get("checking") == "1"
        wait_s = _wait_s(request)
        held = await self._hosted.wait(held, min(wait_s, CHECKING_WAIT_S) if checks else wait_s)
        status = self._hosted.status(held)
        if status != "confirmed":
            if checks and status == "pending" and not await self._is_checking(held):
                return _json({"status": "changed"})
            return _json({"status": status, "expires_in": self._hosted.expires_in_s(held)})
        if held.ticket.handed_over:
            return _json({"status": "done"})
        location = self._hosted.location(site, held)
        response = _json({"status": status, "redirect": location})
        self._hand_over(response, request, site, key, held)
        return response

    async def button(self, _request: Request) -> Response:
        """The script that adds a sign-in button to a page. It contains no user data."""
        headers = {
            "Cache-Control": "public, max-age=3600",
            "Access-Control-Allow-Origin": "*",
            "Cross-Origin-Resource-Policy": "cross-origin",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(self._templates.button(), media_type="text/javascript", headers=headers)

    async def _show(self, request: Request, site: Site) -> Response:
        visit = read_visit(request, self._texts, site)
        key = visit.key(site)
        resumes = RESUME in request.query_params
        held = await self._hosted.find(site, self._tickets.read(request, key))
        if held is None and resumes:
            lost = Shown("lost", again=self._hosted.may_begin(site))
            return self._templates.sign_in(request, site, visit, lost)
        begun = held is None or (
            self._hosted.status(held) in ENDED and not resumes and self._hosted.may_begin(site)
        )
        if held is None or begun:
            held = await self._hosted.open(site, visit, client_of(request))
        held = await self._hosted.set_language(held, visit)
        location = self._hosted.location(site, held)
        if location is not None and not held.ticket.handed_over:
            response = _see_other(location)
            self._hand_over(response, request, site, key, held)
            return response
        shown = await self._page_state(site, held, location)
        response = self._templates.sign_in(request, site, visit, shown)
        if begun:
            self._set_ticket(response, request, site, key, held)
        return response

    async def _restart(self, request: Request, site: Site) -> Response:
        """The button `Try again`. The cookie comes with forms of our own pages alone."""
        visit = read_visit(request, self._texts, site)
        key = visit.key(site)
        held = await self._hosted.find(site, self._tickets.read(request, key))
        response = _see_other(address(request, site, visit))
        if held is not None and self._hosted.status(held) != "pending":
            new = await self._hosted.open(site, visit, client_of(request))
            self._set_ticket(response, request, site, key, new)
        return response

    async def _is_checking(self, sign_in: BrowserSignIn) -> bool:
        return await self._visits.notice(sign_in.session) == "checking"

    async def _page_state(self, site: Site, sign_in: BrowserSignIn, location: str | None) -> Shown:
        status = self._hosted.status(sign_in)
        if status != "pending":
            return Shown(
                "consumed" if status == "confirmed" else status,
                number=sign_in.session.match_number,
                location=location,
                back=self._hosted.back(site) if status in ENDED else None,
                # A request is answered once.
                again=self._hosted.may_begin(site) and (status in ENDED or site.request is None),
            )
        return Shown(
            status,
            messengers=self._hosted.messengers(sign_in),
            number=sign_in.session.match_number,
            expires_in_s=self._hosted.expires_in_s(sign_in),
            page=sign_in.ticket.page,
            addresses=self._questions.offers(sign_in.session),
            platforms=self._visits.offers(sign_in.session),
            visit=await self._visits.notice(sign_in.session),
        )

    def _set_ticket(
        self, response: Response, request: Request, site: Site, key: str, sign_in: BrowserSignIn
    ) -> None:
        self._tickets.write(response, request, site, key, sign_in.ticket, self._hosted.pending_s)

    def _hand_over(
        self, response: Response, request: Request, site: Site, key: str, sign_in: BrowserSignIn
    ) -> None:
        """Remembers that the browser goes on to the site, so that `back` does not send it there again."""
        self._tickets.write(
            response, request, site, key, sign_in.ticket.done(), self._hosted.handed_over_s
        )


def _nothing_begun(request: Request) -> Response:
    """For those who look without a person before them. A prefetch that fails is not shown later."""
    if request.method == "HEAD":
        return Response(headers=HEADERS, media_type="text/html")
    return Response(status_code=503, headers=HEADERS)


def _wait_s(request: Request) -> int:
    text = request.query_params.get("wait", "0")
    # Python refuses, with a ValueError, to read integers of thousands of digits.
    if not (_SECONDS.fullmatch(text) and int(text) <= MAX_WAIT_S):
        raise BadRequest("must be 0-{limit} seconds", field="wait", limit=MAX_WAIT_S)
    return int(text)


def _see_other(location: str) -> Response:
    return RedirectResponse(location, HTTPStatus.SEE_OTHER, HEADERS)


def _json(body: dict[str, object]) -> Response:
    return JSONResponse(body, headers=HEADERS)
