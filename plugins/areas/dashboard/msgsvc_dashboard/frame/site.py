"""Routes every page: who is signed in, whether they may, the transaction, the handler, the answer."""

from collections import defaultdict
from dataclasses import replace
from functools import partial
from hmac import compare_digest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from msgsvc_core.accounts import AccountSession
from msgsvc_core.api.envelope import api_error
from msgsvc_core.dashboard import Download, Moved, Page, PageContext, Pages, PostedForm, Shown
from msgsvc_core.dashboard.browser import CSRF_FIELD, CSRF_HEADER, SESSION_COOKIE, csrf_token
from msgsvc_core.db import Tx
from msgsvc_core.errors import ApiError, Forbidden, NotFound
from msgsvc_core.pages import page_headers, read_language
from msgsvc_core.plugins import answers
from msgsvc_core.service import Service
from msgsvc_dashboard.frame.reading import read_form
from msgsvc_dashboard.frame.rendering import Renderer

STATIC = Path(__file__).parents[1] / "static"
ROOT = "/dashboard"


class Site:
    """All pages of all areas."""

    def __init__(self, service: Service) -> None:
        self._service = service
        found = answers(service.plugins.hook.register_dashboard(service=service))
        self.areas: list[Pages] = sorted(found, key=lambda area: area.area)
        self._renderer = Renderer(self.areas)

    @property
    def pages(self) -> list[Page]:
        return [page for area in self.areas for page in area.pages]

    def routes(self) -> list[BaseRoute]:
        by_path: dict[str, dict[str, Page]] = defaultdict(dict)
        for page in self.pages:
            by_path[path_of(page)][page.method] = page
        return [
            Mount(f"{ROOT}/_static/frame", StaticFiles(directory=STATIC)),
            *(
                Mount(
                    f"{ROOT}/_static/{area.area}", StaticFiles(packages=[(area.package, "static")])
                )
                for area in self.areas
                if area.styles or area.scripts
            ),
            # A literal path comes before one with a parameter in its place.
            *(
                Route(path, partial(self._answer, by_path[path]), methods=list(by_path[path]))
                for path in sorted(by_path, key=lambda path: path.replace("{", "\x7f"))
            ),
        ]

    async def _answer(self, methods: dict[str, Page], request: Request) -> Response:
        page = methods["GET" if request.method == "HEAD" else request.method]
        request.scope["state"]["endpoint"] = path_of(page)
        session = await self._session(request)
        if session is None:
            return RedirectResponse(f"{_root(request)}/sign-in", 303)
        try:
            form = await self._posted(page, request, session)
            return await self._run(page, request, session, form)
        except Exception as error:  # noqa: BLE001 - shown as a page; `api_error` logs it
            return self._problem(request, session, api_error(error))

    async def _session(self, request: Request) -> AccountSession | None:
        token = request.cookies.get(SESSION_COOKIE, "")
        if not token:
            return None
        async with self._service.db.read() as tx:
            return await self._service.accounts.session_of(tx, token)

    async def _posted(self, page: Page, request: Request, session: AccountSession) -> PostedForm:
        if page.method == "GET":
            return PostedForm()
        form = await read_form(request, page.upload_bytes)
        given = request.headers.get(CSRF_HEADER) or form.text(CSRF_FIELD)
        expected = csrf_token(self._service.secrets, session.session_id)
        if not compare_digest(given.encode(), expected.encode()) or not _from_here(request):
            raise Forbidden("this form is not one of ours, or too old; open the page anew")
        return form

    async def _run(
        self, page: Page, request: Request, session: AccountSession, form: PostedForm
    ) -> Response:
        ctx = await self._context(page, request, session, form)
        if page.method == "GET":
            async with self._service.db.read() as tx:
                result = await page.handler(replace(ctx, _tx=tx))
        else:
            try:
                async with self._service.db.transaction() as tx:
                    result = await page.handler(replace(ctx, _tx=tx))
            except ApiError as error:
                if page.again is None or error.status >= 500:
                    raise
                ctx = replace(ctx, error=error)
                async with self._service.db.read() as tx:
                    shown = await page.again(replace(ctx, _tx=tx))
                assert isinstance(shown, Shown)
                result = replace(shown, status=error.status)
        return self._response(page, request, session, ctx, result)

    async def _context(
        self, page: Page, request: Request, session: AccountSession, form: PostedForm
    ) -> PageContext:
        service, account = self._service, session.account
        async with service.db.read() as tx:
            project, role, plan = await self._place(tx, page, request, session)
        lang = account.lang or self._lang(request)
        ctx = PageContext(
            service=service,
            account=account,
            project=project,
            role=role,
            member=None,
            plan=plan,
            lang=lang,
            timezone=ZoneInfo(account.timezone or "UTC"),
            _=service.texts.into(lang),
            params=request.path_params,
            query=request.query_params,
            form=form,
            root=_root(request),
            ip=request.client.host if request.client else "",
            fragment=request.headers.get("hx-target", "")
            if "hx-request" in request.headers
            else "",
        )
        if not ctx.may(page.access):
            raise Forbidden("your role does not open this page")
        return ctx

    async def _place(
        self, tx: Tx, page: Page, request: Request, session: AccountSession
    ) -> tuple[Any, Any, Any]:
        if page.access in {"operate", "self"}:
            return None, None, None
        project_id = request.path_params["project_id"]
        accounts = self._service.accounts
        role = await accounts.role_in(tx, session.account.account_id, project_id)
        if role is None:
            raise NotFound("there is no such page")
        project = await self._service.projects.find(tx, project_id)
        plan = await accounts.plan_of(tx, await accounts.owner_of(tx, project_id))
        return project, role, plan

    def _response(
        self,
        page: Page,
        request: Request,
        session: AccountSession,
        ctx: PageContext,
        result: Shown | Moved | Download,
    ) -> Response:
        headers = page_headers(referrer="same-origin")
        if isinstance(result, Moved):
            return RedirectResponse(result.to, 303, headers)
        if isinstance(result, Download):
            disposition = f'attachment; filename="{result.filename}"'
            return StreamingResponse(
                result.pieces,
                media_type=result.media_type,
                headers={**headers, "Content-Disposition": disposition},
            )
        html = self._renderer.render(page.area, result, self._values(request, session, ctx))
        return HTMLResponse(html, result.status, headers)

    def _values(
        self, request: Request, session: AccountSession, ctx: PageContext
    ) -> dict[str, Any]:
        return {
            "page": ctx,
            "_": ctx._,
            "lang": ctx.lang,
            "static": f"{_root(request)}/_static",
            "csrf": csrf_token(self._service.secrets, session.session_id),
            "navigation": self._navigation(ctx),
        }

    def _navigation(self, ctx: PageContext) -> list[dict[str, str]]:
        if ctx.project is None:
            return []
        entries = [page for page in self.pages if page.nav is not None and ctx.may(page.access)]
        return [
            {"title": ctx._(page.nav.title), "icon": page.nav.icon, "url": ctx.url(page.path)}
            for page in sorted(entries, key=lambda page: page.nav.order if page.nav else 0)
            if page.nav is not None
        ]

    def _problem(self, request: Request, session: AccountSession, error: ApiError) -> Response:
        lang = session.account.lang or self._lang(request)
        html = self._renderer.render_frame(
            "problem.html",
            {
                "_": self._service.texts.into(lang),
                "lang": lang,
                "static": f"{_root(request)}/_static",
                "root": _root(request),
                "error": error,
            },
        )
        return HTMLResponse(html, error.status, page_headers())

    def _lang(self, request: Request) -> str:
        accepted = request.headers.get("accept-language", "")
        return read_language("", accepted, self._service.settings.default_lang)


def path_of(page: Page) -> str:
    """Where a page is, with its parameters as `{name}`."""
    if page.access == "operate":
        return f"{ROOT}/operator{page.path}"
    if page.access == "self":
        return f"{ROOT}/account{page.path}"
    return f"{ROOT}/projects/{{project_id}}{page.path}"


def _root(request: Request) -> str:
    return f"{request.scope.get('root_path', '')}{ROOT}"


def _from_here(request: Request) -> bool:
    """Whether a browser says that one of our pages sent the form; older ones say nothing."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
