"""Turns a handler's result into a response, as a page or a fragment."""

import json
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from msgsvc_core.api.exports import ExportResponse, ExportStream
from msgsvc_core.dashboard import Download, Page, PageContext, Pages, Redirect
from msgsvc_core.dashboard.answers import Result
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.members.models import Membership
from msgsvc_core.pages import page_headers, request_id
from msgsvc_core.projects.branding import PageBrand
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts import AccountSession
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.frame.addresses import asked_for, root_of
from msgsvc_dashboard.frame.assets import Assets
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.frame.gate import Gate, RoleForbidden, account_of
from msgsvc_dashboard.frame.looks import theme_of
from msgsvc_dashboard.frame.navigation import Entry, EntryGroup, Navigation
from msgsvc_dashboard.frame.notices import Notice, forget_notice, leave_notice, read_notice
from msgsvc_dashboard.frame.rendering import Renderer
from msgsvc_dashboard.views.bar import ViewBar, bar_of, default_url
from msgsvc_dashboard.views.service import SavedViews

#: What htmx may do: nothing that the content security policy forbids, and a refusal is shown, too.
HTMX = json.dumps(
    {
        "includeIndicatorStyles": False,
        "allowEval": False,
        "selfRequestsOnly": True,
        "historyCacheSize": 0,
        "refreshOnHistoryMiss": True,
        "responseHandling": [
            {"code": "204", "swap": False},
            {"code": "[23]..", "swap": True},
            {"code": "[45]..", "swap": True, "error": True},
        ],
    }
)

#: Projects that are offered to switch to; the list has the others.
MOST_PROJECTS = 12


@dataclass(frozen=True, slots=True)
class Frame:
    """The data of `page.html` around a page."""

    navigation: list[EntryGroup]
    account: list[Entry]
    #: The entry of the navigation that the page is below.
    above: Entry | None
    projects: list[Membership]
    notice: Notice
    theme: str
    styles: list[str]
    scripts: list[str]
    #: The address of a GET that shows this page, to come back to.
    here: str
    is_quarantined: bool
    brand: PageBrand
    #: Whether the page's script is to tell the browser's time zone, since the account has none.
    asks_timezone: bool
    #: The saved views of the list that is open.
    views: ViewBar | None
    htmx: str = HTMX


class Answers:
    """Pages, fragments, redirects, downloads and errors."""

    def __init__(
        self,
        *,
        db: Database,
        secrets: SecretBox,
        accounts: Accounts,
        gate: Gate,
        areas: list[Pages],
        assets: Assets,
        navigation: Navigation,
        brand: InstallationBrand,
        views: SavedViews,
    ) -> None:
        self._brand = brand
        self._db = db
        self._views = views
        self._secrets = secrets
        self._accounts = accounts
        self._gate = gate
        self._areas = {area.area: area for area in areas}
        self._assets = assets
        self._renderer = Renderer(areas)
        self._navigation = navigation

    async def answer(
        self,
        page: Page,
        request: Request,
        session: AccountSession,
        context: PageContext,
        result: Result,
    ) -> Response:
        if isinstance(result, Redirect):
            return self._moved(request, session, result)
        if isinstance(result, Download):
            return _download(result)
        notice = read_notice(request, session, self._secrets)
        values = {
            "page": context,
            "_": context._,
            "lang": context.lang,
            "static": self._static(request),
            "csrf": self._gate.token(session),
            "frame": await self._frame(page, request, context, notice),
        }
        html = self._renderer.render(page.area, result, values)
        response = HTMLResponse(html, result.status, _headers())
        if notice.taken:
            forget_notice(response, request)
        return response

    async def to_default_view(self, request: Request, context: PageContext) -> Response | None:
        """Leads from a list without filters to the view with which its reader opens it, if there is one."""
        async with self._db.read() as tx:
            to = await default_url(self._views, tx, context, asked_for(request))
        return None if to is None else _redirect(request, to)

    def to_sign_in(self, request: Request) -> Response:
        """Nobody is signed in, or not any more: also while a fragment is asked for."""
        back = asked_for(request)
        if "hx-request" in request.headers:
            back = request.headers.get("hx-current-url", "")
            back = back[back.find("/", back.find("//") + 2) :] if "//" in back else ""
        elif request.method != "GET":
            back = ""
        to = f"{root_of(request)}/sign-in" + (f"?next={quote(back)}" if back else "")
        return _redirect(request, to)

    def refusal(
        self, request: Request, session: AccountSession | None, error: ApiError
    ) -> Response:
        """A page that says what is wrong; to htmx, a text that goes to the top of the open page."""
        lang = self._gate.lang(request, session)
        by_htmx = "hx-request" in request.headers
        html = self._renderer.render_frame(
            "refusal.html" if by_htmx else "problem.html",
            {
                "_": self._gate.translate(lang, __name__),
                "lang": lang,
                "theme": theme_of(request),
                "static": self._static(request),
                "root": root_of(request),
                "status": error.status,
                "error": error,
                "is_of_role": isinstance(error, RoleForbidden),
                "request_id": request_id(request),
            },
        )
        headers = _headers()
        if by_htmx:
            headers |= {
                "HX-Retarget": "#problem",
                "HX-Reswap": "innerHTML show:top",
                # Of the page that was asked for, filters take a part that is not in it.
                "HX-Reselect": ".notice",
            }
        if error.retry_after_s is not None:
            headers["Retry-After"] = str(error.retry_after_s)
        return HTMLResponse(html, error.status, headers)

    def _moved(self, request: Request, session: AccountSession, moved: Redirect) -> Response:
        response = _redirect(request, moved.to)
        if moved.notice:
            leave_notice(response, request, session, self._secrets, moved.notice)
        return response

    async def _frame(
        self, page: Page, request: Request, context: PageContext, notice: Notice
    ) -> Frame:
        async with self._db.read() as tx:
            projects = await self._accounts.projects_of(tx, context.viewer.account_id)
            views = await bar_of(self._views, tx, context, asked_for(request))
        area = self._areas[page.area]
        path = request.url.path
        at_root = f"{context.root}/projects/{context.project.project_id}" if context.project else ""
        return Frame(
            navigation=self._navigation.groups(context, path),
            account=self._navigation.of_account(context, path),
            above=self._navigation.above(context, path),
            projects=list(projects)[:MOST_PROJECTS],
            notice=notice,
            theme=theme_of(request),
            styles=[f"{area.area}/{name}" for name in area.styles],
            scripts=[f"{area.area}/{name}" for name in area.scripts],
            here=asked_for(request) if request.method == "GET" else at_root,
            is_quarantined=self._brand.is_quarantined,
            brand=self._brand.on_page(context.root),
            # What a form was answered with can't be loaded again.
            asks_timezone=request.method == "GET" and account_of(context).timezone is None,
            views=views,
        )

    def _static(self, request: Request) -> str:
        return f"{root_of(request)}/_static/{self._assets.version}"


def _headers() -> dict[str, str]:
    headers = page_headers(referrer="same-origin")
    headers["Vary"] += ", HX-Request"
    return headers


def _redirect(request: Request, to: str) -> Response:
    """htmx follows redirects by itself, and would put the whole page where the fragment belongs."""
    if "hx-request" in request.headers:
        return Response(status_code=200, headers={**_headers(), "HX-Redirect": to})
    return RedirectResponse(to, 303, _headers())


def _download(download: Download) -> Response:
    plain = "".join(
        c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in download.filename
    )
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(download.filename)}"
    pieces, headers = download.pieces, {**_headers(), "Content-Disposition": disposition}
    if isinstance(pieces, ExportStream):
        return ExportResponse(pieces, media_type=download.media_type, headers=headers)
    return StreamingResponse(pieces, media_type=download.media_type, headers=headers)
