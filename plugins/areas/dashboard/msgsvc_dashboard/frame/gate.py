"""Authentication and authorization of page requests, before anything they sent is read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hmac import compare_digest
from typing import NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from starlette.requests import Request

from msgsvc_core.api.json_input import is_storable
from msgsvc_core.billing import BillingGate, Plan
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Page, PageContext, PostedForm
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Forbidden, NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Texts, Translate, package_of
from msgsvc_core.members.models import Member, Role
from msgsvc_core.members.service import Members
from msgsvc_core.pages import read_language
from msgsvc_core.projects import Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts import Account, AccountSession
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.frame.addresses import root_of
from msgsvc_dashboard.frame.browser import CSRF_FIELD, CSRF_HEADER, csrf_token, session_cookie
from msgsvc_dashboard.frame.reading import reading


class RoleForbidden(Forbidden):
    """The role in the project does not allow the page."""


class Place(NamedTuple):
    """A project, and the account's role in it."""

    project: Project | None = None
    role: Role | None = None
    member: Member | None = None
    plan: Plan | None = None


class Places:
    """Finds the project of a page, and the account's role in it."""

    def __init__(self, *, billing: BillingGate, projects: Projects, members: Members) -> None:
        self._billing = billing
        self._projects = projects
        self._members = members

    async def find(self, tx: Tx, project_id: str, account_id: str) -> Place:
        """Raises `NotFound` for a project in which the account has no role."""
        role = await self._members.role_of(tx, account_id, project_id)
        if role is None:
            raise NotFound("there is no such page")
        return Place(
            await self._projects.get(tx, project_id),
            role,
            await self._members.find_by_account(tx, project_id, account_id),
            await self._billing.plan_of(tx, project_id),
        )


def account_of(page: PageContext) -> Account:
    """The account that has the page open, with what only the dashboard stores of it."""
    assert isinstance(page.viewer, Account), "the gate lets in accounts"
    return page.viewer


class Gate:
    """Authorizes page requests."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        texts: Texts,
        accounts: Accounts,
        places: Places,
        settings: Settings,
        timezone: str,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._texts = texts
        self._accounts = accounts
        self._places = places
        self._settings = settings
        #: Of accounts that have none of their own.
        self._timezone = timezone

    async def session(self, request: Request) -> AccountSession | None:
        """Who is signed in; None for nobody."""
        name = session_cookie(self._settings.base_url)
        token = request.cookies.get(name, "")
        return await self._accounts.visit(token) if token else None

    def translate(self, lang: str, module: str) -> Translate:
        """The texts of a module's package in a language."""
        return self._texts.into(lang, module)

    def token(self, session: AccountSession) -> str:
        """What forms of ours carry."""
        return csrf_token(self._secrets, session.session_id)

    def lang(self, request: Request, session: AccountSession | None = None) -> str:
        """What the account chose, else what the browser likes."""
        accepted = request.headers.get("accept-language", "")
        chosen = session.account.lang if session is not None else None
        return chosen or read_language("", accepted, self._settings.default_lang)

    async def context(self, page: Page, request: Request, session: AccountSession) -> PageContext:
        """What the handler gets, as yet without a transaction and a form.

        Raises `NotFound` for a project in which the account has no role, and `Forbidden` for a
        page that the role does not open.
        """
        check_address(request)
        async with self._db.read() as tx:
            place = await self._place(tx, page, request, session)
        lang = self.lang(request, session)
        asks_by_htmx = "hx-request" in request.headers
        context = PageContext(
            viewer=session.account,
            project=place.project,
            role=place.role,
            member=place.member,
            plan=place.plan,
            lang=lang,
            languages=self._settings.languages,
            timezone=ZoneInfo(session.account.timezone or self._timezone),
            clock=self._clock,
            _=self._texts.into(lang, package_of(page.handler)),
            params=request.path_params,
            query=request.query_params,
            form=PostedForm(),
            root=root_of(request),
            ip=request.client.host if request.client else "",
            session_id=session.session_id,
            fragment=request.headers.get("hx-target", "") if asks_by_htmx else "",
        )
        if not context.may(page.access):
            raise RoleForbidden("your role does not open this page")
        return context

    @asynccontextmanager
    async def form(
        self, request: Request, session: AccountSession, upload_bytes: int | None = None
    ) -> AsyncIterator[PostedForm]:
        """What a form of ours posted; of another's, nothing is read. Raises `Forbidden`."""
        if not from_here(request):
            raise not_ours()
        async with reading(request, upload_bytes) as form:
            given = request.headers.get(CSRF_HEADER) or form.text(CSRF_FIELD)
            if not compare_digest(given.encode(), self.token(session).encode()):
                raise not_ours()
            yield form

    async def _place(self, tx: Tx, page: Page, request: Request, session: AccountSession) -> Place:
        if page.access in {"installation:operate", "account:self"}:
            return Place()
        project_id = request.path_params["project_id"]
        return await self._places.find(tx, project_id, session.account.account_id)


def check_address(request: Request) -> None:
    """Raises for what no database stores: unpaired surrogates and NUL."""
    if not all(map(is_storable, request.path_params.values())):
        raise NotFound("there is no such page")
    if not all(is_storable(name + value) for name, value in request.query_params.multi_items()):
        raise ValidationFailed("a text holds NUL or invalid UTF-8", field="query")


def from_here(request: Request) -> bool:
    """Whether the browser reports that one of our pages sent the form; older ones report nothing."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in {"same-origin", "none"}
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


def not_ours() -> Forbidden:
    return Forbidden("this form has expired; reload the page")
