"""Handles page requests: authentication, authorization, transaction, handler, response."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import cached_property, partial, update_wrapper
from typing import NamedTuple, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.api.envelope import api_error
from msgsvc_core.dashboard import Figure, Hit, Page, PageContext, Pages, Problem, Render
from msgsvc_core.dashboard.answers import Result
from msgsvc_core.dashboard.declared import Contribution
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import ApiError, NotFound, ProjectInactive
from msgsvc_core.kernel.i18n import package_of
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts import Accounts, AccountSession
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.frame.addresses import ROOT, path_of
from msgsvc_dashboard.frame.answer import Answers
from msgsvc_dashboard.frame.assets import Assets
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.frame.gate import Gate
from msgsvc_dashboard.frame.looks import change_looks, learn_timezone
from msgsvc_dashboard.frame.navigation import Navigation
from msgsvc_dashboard.views.service import SavedViews

T = TypeVar("T", Figure, Problem, Hit)


class CardShown(NamedTuple):
    """A part of the overview."""

    area: str
    shown: Render
    wide: bool


class Site:
    """All pages of all areas."""

    def __init__(
        self,
        *,
        db: Database,
        secrets: SecretBox,
        accounts: Accounts,
        audit: Audit,
        gate: Gate,
        find_areas: Callable[[], Sequence[Pages]],
        brand: InstallationBrand,
        views: SavedViews,
    ) -> None:
        self._brand = brand
        self._db = db
        self._secrets = secrets
        self._accounts = accounts
        self._audit = audit
        self._gate = gate
        self._find_areas = find_areas
        self._views = views

    @cached_property
    def areas(self) -> list[Pages]:
        """Those of all plugins; the first time when every plugin is there."""
        return sorted(self._find_areas(), key=lambda area: area.area)

    @cached_property
    def _assets(self) -> Assets:
        return Assets(self.areas)

    @cached_property
    def _navigation(self) -> Navigation:
        return Navigation(self.pages)

    @cached_property
    def _answers(self) -> Answers:
        return Answers(
            db=self._db,
            secrets=self._secrets,
            accounts=self._accounts,
            gate=self._gate,
            areas=self.areas,
            assets=self._assets,
            navigation=self._navigation,
            brand=self._brand,
            views=self._views,
        )

    @property
    def pages(self) -> list[Page]:
        return [page for area in self.areas for page in area.pages]

    async def cards(self, page: PageContext) -> list[CardShown]:
        """The parts of the overview that somebody may see."""
        cards = [card for area in self.areas for card in area.cards if page.may(card.access)]
        return [
            CardShown(
                card.area, cast("Render", await card.show(_for(page, card.handler))), card.wide
            )
            for card in sorted(cards, key=lambda card: card.order)
            if card.show is not None
        ]

    async def figures(self, page: PageContext) -> list[Figure]:
        """Of this moment, of the areas that somebody may see."""
        return await _collected(
            page, [source for area in self.areas for source in area.figure_sources]
        )

    async def problems(self, page: PageContext) -> list[Problem]:
        """Those that somebody may see, the worst first."""
        found = await _collected(
            page, [source for area in self.areas for source in area.problem_sources]
        )
        return sorted(found, key=lambda problem: problem.tone != "bad")

    async def search(self, page: PageContext, text: str) -> list[Hit]:
        """What that text finds for the viewer: pages first, then what areas find, in their order."""
        searching = replace(page, searched=text)
        found = await _collected(
            searching, [source for area in self.areas for source in area.hit_sources]
        )
        return [*self._navigation.search(page, text), *found]

    def routes(self) -> list[BaseRoute]:
        by_path: dict[str, dict[str, Page]] = defaultdict(dict)
        for page in self.pages:
            by_path[path_of(page)][page.method] = page
        return [
            *self._assets.routes(),
            Route(f"{ROOT}/account/look", self._look, methods=["POST"]),
            Route(f"{ROOT}/account/timezone", self._timezone, methods=["POST"]),
            # A literal path comes before one with a parameter in its place.
            *(
                self._route(path, by_path[path])
                for path in sorted(by_path, key=lambda path: path.replace("{", "\x7f"))
            ),
            # People who mistyped an address, or come too late, read a page and no JSON.
            Route(f"{ROOT}/{{rest:path}}", self._missing),
        ]

    def _route(self, path: str, methods: dict[str, Page]) -> Route:
        # The reference says of it what its page says.
        shown = update_wrapper(partial(self._page, methods), next(iter(methods.values())).handler)
        return Route(path, shown, methods=list(methods))

    async def _page(self, methods: dict[str, Page], request: Request) -> Response:
        page = methods["GET" if request.method == "HEAD" else request.method]
        request.scope["state"]["endpoint"] = path_of(page)
        session: AccountSession | None = None
        try:
            session = await self._gate.session(request)
            if session is None:
                return self._answers.to_sign_in(request)
            context = await self._gate.context(page, request, session)
            async with AsyncExitStack() as stack:
                if page.method == "POST":
                    form = self._gate.form(request, session, page.upload_bytes)
                    posted = await stack.enter_async_context(form)
                    # Sending took as long as they wished. Who was signed out, or removed, meanwhile
                    # changes nothing any more.
                    session = await self._gate.session(request)
                    if session is None:
                        return self._answers.to_sign_in(request)
                    context = await self._gate.context(page, request, session)
                    context = replace(context, form=posted)
                elif page.nav is not None and not request.url.query:
                    moved = await self._answers.to_default_view(request, context)
                    if moved is not None:
                        return moved
                context, result = await self._result(page, context)
                return await self._answers.answer(page, request, session, context, result)
        except Exception as error:  # noqa: BLE001 - shown as a page; `api_error` logs it
            return self._answers.refusal(request, session, api_error(error))

    async def _missing(self, request: Request) -> Response:
        request.scope["state"]["endpoint"] = f"{ROOT}/{{rest}}"
        return self._answers.refusal(request, None, NotFound("there is no such page"))

    async def _result(self, page: Page, context: PageContext) -> tuple[PageContext, Result]:
        """What the handler answers, and the context to show it with: that has the error of a refusal."""
        try:
            if page.method == "GET" or page.read_only:
                return context, await self._read(page, context)
            project = context.project
            if project is not None and project.status != "active":
                raise ProjectInactive("the project {name!r} is disabled", name=project.name)
            return context, await self._change(page, context)
        except ApiError as error:
            if page.show_form is None or error.status >= 500:
                raise
            context = replace(context, error=error)
            async with self._db.read() as tx:
                shown = await page.show_form(replace(context, optional_tx=tx))
            if isinstance(shown, Render):
                shown = replace(shown, status=error.status)
            return context, shown

    async def _read(self, page: Page, context: PageContext) -> Result:
        assert page.show is not None, "pages are bound"
        if not page.holds_connection:
            return await page.show(context)
        async with self._db.read() as tx:
            return await page.show(replace(context, optional_tx=tx))

    async def _change(self, page: Page, context: PageContext) -> Result:
        """In one transaction, with its entry in the audit log."""
        assert page.show is not None, "pages are bound"
        if not page.holds_connection:
            return await page.show(context)
        refused: ApiError | None = None
        async with self._db.transaction() as tx:
            try:
                result = await page.show(replace(context, optional_tx=tx))
                named = [value for name, value in context.params.items() if name != "project_id"]
                await self._audit.write(
                    tx,
                    page.name,
                    project_id=context.project.project_id if context.project else None,
                    account_id=context.viewer.account_id,
                    target=" ".join(map(str, named)) or None,
                    detail=context.noted,
                    ip=context.ip,
                )
            except ApiError as error:
                if not error.keeps_writes:
                    raise
                refused = error
        if refused is not None:
            raise refused
        for then in context.after_commit:
            then()
        return result

    async def _look(self, request: Request) -> Response:
        session: AccountSession | None = None
        try:
            session = await self._gate.session(request)
            if session is None:
                return self._answers.to_sign_in(request)
            return await change_looks(self._db, self._accounts, self._gate, request, session)
        except Exception as error:  # noqa: BLE001 - shown as a page; `api_error` logs it
            return self._answers.refusal(request, session, api_error(error))

    async def _timezone(self, request: Request) -> Response:
        session: AccountSession | None = None
        try:
            session = await self._gate.session(request)
            if session is None:
                return self._answers.to_sign_in(request)
            return await learn_timezone(self._accounts, self._gate, request, session)
        except Exception as error:  # noqa: BLE001 - shown as a page; `api_error` logs it
            return self._answers.refusal(request, session, api_error(error))


async def _collected(page: PageContext, sources: Sequence[Contribution[T]]) -> list[T]:
    found: list[T] = []
    for source in sorted(sources, key=lambda source: source.order):
        if page.may(source.access) and source.show is not None:
            found += await source.show(_for(page, source.handler))
    return found


def _for(page: PageContext, handler: Callable[..., object]) -> PageContext:
    """The request as the handler's area has it, which speaks with its own texts."""
    return replace(page, _=page._[package_of(handler)])
