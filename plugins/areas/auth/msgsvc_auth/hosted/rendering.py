"""Renders the hosted page."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from msgsvc_auth.hosted.addresses import AddressOffer
from msgsvc_auth.hosted.models import Messenger, Site, Visit
from msgsvc_auth.hosted.requests import RESUME, address, language, root_of
from msgsvc_auth.models import Status
from msgsvc_auth.platforms.models import PlatformOffer, VisitNotice
from msgsvc_core.api.envelope import api_error
from msgsvc_core.kernel.i18n import Language, Texts
from msgsvc_core.pages import new_templates, page_headers, qr_code, request_id
from msgsvc_core.projects.page_brand import page_brand

if TYPE_CHECKING:
    from jinja2 import Environment

#: No referrer, for the address holds the state.
HEADERS = page_headers()

#: Names the channel on which a question was sent to the address that was typed.
SENT = "sent"

#: Seconds between two looks of a browser without JavaScript.
REFRESH_S = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """The state of a sign-in, and the data to continue it. `lost`: this browser has none."""

    status: Status | Literal["lost"]
    messengers: Sequence[Messenger] = ()
    number: int | None = None
    expires_in_s: int = 0
    page: str = ""
    #: States in which a redirected browser may still need the code.
    location: str | None = None
    #: Takes a browser that gave up back to the requester. Static links have no such address.
    back: str | None = None
    #: Whether another sign-in can be started here.
    again: bool = True
    #: Messengers on whose own page the person can sign in, and what became of the latest visit there.
    platforms: Sequence[PlatformOffer] = ()
    visit: VisitNotice | None = None
    #: Channels on which people can type their address.
    addresses: Sequence[AddressOffer] = ()


class PageTemplates:
    """Renders the pages in each supported language."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    @cached_property
    def _templates(self) -> "Environment":
        templates = new_templates("msgsvc_auth.hosted")
        templates.filters["qr"] = qr_code
        return templates

    def sign_in(self, request: Request, site: Site, visit: Visit, shown: Shown) -> Response:
        """The page itself, as far as the sign-in has come."""
        sent = request.query_params.get(SENT, "")
        is_offered = any(offer.channel == sent for offer in shown.addresses)
        is_sent = is_offered and shown.number is not None
        kept = {RESUME: "1", SENT: sent if is_sent else ""}
        here = address(request, site, visit, **kept)
        languages = {
            lang: address(request, site, Visit(visit.state, lang, visit.channel), **kept)
            for lang in self._texts.spoken
        }
        return self._page(
            request,
            "sign_in.html" if shown.status == "pending" else "ended.html",
            visit.lang,
            name=site.name,
            project=site.project.public_name,
            requested=site.request is not None,
            host=site.host,
            site_root=site.root,
            status_url=_status_url(request, site, visit, shown),
            here=here,
            again=address(request, site, visit),
            leave=f"{root_of(request)}/{site.path}/platform/",
            leave_query=address(request, site, visit).partition("?")[2],
            languages=languages,
            minutes=math.ceil(shown.expires_in_s / 60),
            refresh_s=REFRESH_S,
            shown=shown,
            sent=is_sent,
            by_address=f"{root_of(request)}/{site.path}/address/",
        )

    def address(
        self,
        request: Request,
        site: Site,
        visit: Visit,
        offer: AddressOffer,
        *,
        typed: str = "",
        fault: str | None = None,
        wait_s: int | None = None,
    ) -> Response:
        """The form for an address, with what is wrong with the one that was typed."""
        path = f"{root_of(request)}/{site.path}/address/{offer.channel}"

        def here(lang: Language) -> str:
            query = address(request, site, Visit(visit.state, lang, visit.channel))
            return f"{path}?{query.partition('?')[2]}"

        response = self._page(
            request,
            "address.html",
            visit.lang,
            200 if fault is None else 429 if fault == "too_many" else 400,
            name=site.name,
            offer=offer,
            typed=typed,
            fault=fault,
            minutes=math.ceil((wait_s or 0) / 60),
            here=here(visit.lang),
            languages={lang: here(lang) for lang in self._texts.spoken},
            back=address(request, site, visit, **{RESUME: "1"}),
        )
        if wait_s is not None:
            response.headers["Retry-After"] = str(wait_s)
        return response

    def problem(self, request: Request, failure: Exception) -> Response:
        """A page for what can't be shown."""
        error = api_error(failure)
        wait_s = error.retry_after_s
        response = self._page(
            request,
            "problem.html",
            language(request, self._texts),
            error.status,
            minutes=None if wait_s is None else math.ceil(wait_s / 60),
        )
        if wait_s is not None:
            response.headers["Retry-After"] = str(wait_s)
        return response

    def button(self) -> str:
        """The script for sites' own pages."""
        words = {}
        for lang in self._texts.spoken:
            _ = self._texts.into(lang, __name__)
            words[lang] = _("Sign in through a messenger")
        return self._templates.get_template("button.js").render(words=words)

    def _page(
        self, request: Request, template: str, lang: str, status: int = 200, **values: object
    ) -> Response:
        html = self._templates.get_template(template).render(
            static=f"{root_of(request)}/_static",
            lang=lang,
            _=self._texts.into(lang, __name__),
            status=status,
            request_id=request_id(request),
            brand=page_brand(request),
            **values,
        )
        return HTMLResponse(html, status, HEADERS)


def _status_url(request: Request, site: Site, visit: Visit, shown: Shown) -> str:
    query = {"key": visit.key(site), "page": shown.page}
    if shown.visit == "checking":
        query["checking"] = "1"
    return f"{root_of(request)}/{site.path}/status?{urlencode(query)}"
