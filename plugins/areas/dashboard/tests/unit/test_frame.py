"""Who gets which page, and what a change leaves behind."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from msgsvc_core.dashboard import PageContext, Pages, Redirect
from msgsvc_core.kernel.errors import ApiError, Conflict, Forbidden, NotFound, ValidationFailed
from msgsvc_core.kernel.i18n import Translate
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.members.models import AddMemberBody, Member
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.frame.branding import InstallationBrand
from msgsvc_dashboard.frame.gate import Gate, Places, RoleForbidden
from msgsvc_dashboard.views import SavedViews
from msgsvc_devkit.core import PROJECT, MemoryCore
from plugins.areas.dashboard.tests.unit.browsers import ANN, request, session, to
from plugins.areas.dashboard.tests.unit.signing import Ann, audited

HOME = f"/dashboard/projects/{PROJECT}"


class Dashboard:
    """Ann, who owns Shop and is signed in, and an area with pages of a test."""

    def __init__(self, ann: Ann, token: str) -> None:
        self.core, self.ann = ann.core, ann
        self.session = session(ann.account)
        self.cookies = {"msgsvc_session": token}
        self.area = Pages("trial", package="msgsvc_dashboard.developers")

    def places(self) -> Places:
        core = self.core
        return Places(billing=core.billing, projects=core.projects, members=core.members)

    def gate(self) -> Gate:
        return Gate(
            clock=self.core.clock,
            db=self.core.db,
            secrets=self.core.secrets,
            texts=self.core.texts,
            accounts=self.ann.parts.accounts,
            places=self.places(),
            settings=self.core.config,
            timezone="UTC",
        )

    def site(self) -> Site:
        return Site(
            db=self.core.db,
            secrets=self.core.secrets,
            accounts=self.ann.parts.accounts,
            audit=self.ann.parts.audit,
            gate=self.gate(),
            find_areas=lambda: [self.area.bound(Providers())],
            brand=self.ann.plugin.get(InstallationBrand),
            views=self.ann.plugin.get(SavedViews),
        )

    async def form(self, path: str, **form: str) -> Request:
        """A form of ours that her browser sends."""
        [signed_in] = await self.ann.sessions()
        form = {"_csrf": self.gate().token(signed_in), **form}
        return request(f"{HOME}{path}", form=form, cookies=self.cookies, project_id=PROJECT)

    async def post(self, path: str, **form: str) -> Response:
        return await self.get(path, await self.form(path, **form))

    async def get(self, path: str, asked: Request) -> Response:
        [route] = [
            each
            for each in self.site().routes()
            if isinstance(each, Route) and each.path == f"/dashboard/projects/{{project_id}}{path}"
        ]
        response = await route.endpoint(asked)
        assert isinstance(response, Response)
        return response

    async def has_tag(self, name: str) -> bool:
        async with self.core.db.read() as tx:
            return bool(await self.core.tags.ids_of(tx, PROJECT, [name]))


@pytest.fixture
async def shop(ann: Ann) -> Dashboard:
    async with ann.core.db.transaction() as tx:
        await ann.parts.accounts.give_project(tx, PROJECT, ann.account_id)
    _, token = await ann.open_session()
    return Dashboard(ann, token)


async def add_bob(core: MemoryCore) -> Member:
    """An agent, who has the account `acc_bob`."""
    async with core.db.transaction() as tx:
        body = AddMemberBody(name="Bob", email="bob@shop.example", role="agent")
        bob = await core.members.add(tx, PROJECT, body)
        await core.members.link_account(tx, PROJECT, bob.member_id, "acc_bob")
    return bob


# ---- whose project it is -------------------------------------------------------------------------


async def test_a_project_is_there_for_those_who_have_a_role_in_it(shop: Dashboard) -> None:
    bob, places = await add_bob(shop.core), shop.places()
    async with shop.core.db.read() as tx:
        owner = await places.find(tx, PROJECT, shop.ann.account_id)
        agent = await places.find(tx, PROJECT, "acc_bob")

        assert (owner.role, owner.member) == ("owner", None)
        assert (agent.role, agent.member) == ("agent", bob)
        with pytest.raises(NotFound):
            await places.find(tx, PROJECT, "acc_stranger")


# ---- the gate ------------------------------------------------------------------------------------


async def handle(page: PageContext) -> Redirect:
    return Redirect(page.url("/done"))


async def test_a_cookie_says_who_asks(shop: Dashboard) -> None:
    gate, [signed_in] = shop.gate(), await shop.ann.sessions()

    assert await gate.session(request(cookies=shop.cookies)) == signed_in
    assert await gate.session(request(cookies={"msgsvc_session": "another"})) is None
    assert await gate.session(request()) is None


async def test_a_page_reads_the_accounts_language_before_the_browsers(shop: Dashboard) -> None:
    russian = {"accept-language": "ru"}
    chosen = session(replace(ANN, lang="en"))

    assert shop.gate().lang(request(headers=russian)) == "ru"
    assert shop.gate().lang(request(headers=russian), chosen) == "en"
    assert shop.gate().lang(request()) == "en"


async def test_what_the_role_does_not_open_is_refused_before_anything_is_read(
    shop: Dashboard,
) -> None:
    await add_bob(shop.core)
    shop.area.get("/keys", access="project:read")(handle)
    [keys] = shop.area.pages
    bobs = session(replace(ANN, account_id="acc_bob"))

    with pytest.raises(RoleForbidden):
        await shop.gate().context(keys, request(project_id=PROJECT), bobs)
    found = await shop.gate().context(keys, request(project_id=PROJECT), shop.session)
    assert (found.role, found.project_id) == ("owner", PROJECT)


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        (request(project_id="prj_\0"), NotFound),
        (request(project_id=PROJECT, query={"q": "\0"}), ValidationFailed),
    ],
)
async def test_no_database_is_asked_for_what_none_takes(
    shop: Dashboard, asked: Request, refusal: type[ApiError]
) -> None:
    async with shop.core.db.transaction() as tx:
        # SQLite takes NUL, so the page would be there.
        await shop.core.project(tx, "prj_\0")
        await shop.ann.parts.accounts.give_project(tx, "prj_\0", shop.ann.account_id)
    shop.area.get("/keys", access="project:read")(handle)

    with pytest.raises(refusal):
        await shop.gate().context(shop.area.pages[0], asked, shop.session)


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
async def test_another_sites_form_is_not_read_even_with_the_token(
    shop: Dashboard, headers: dict[str, str]
) -> None:
    gate = shop.gate()
    sent = request(form={"_csrf": gate.token(session())}, headers=headers)

    with pytest.raises(Forbidden):
        async with gate.form(sent, session()):
            pass


async def test_a_form_carries_the_token_of_its_session(shop: Dashboard) -> None:
    gate = shop.gate()
    token = gate.token(session())
    async with gate.form(request(form={"_csrf": token, "name": "x"}), session()) as form:
        assert form.text("name") == "x"
    by_htmx = request(form={"name": "y"}, headers={"x-csrf-token": token})
    async with gate.form(by_htmx, session()) as form:
        assert form.text("name") == "y"
    for given in ("", gate.token(session(session_id="ase_2"))):
        with pytest.raises(Forbidden):
            async with gate.form(request(form={"_csrf": given}), session()):
                pass


# ---- the site ------------------------------------------------------------------------------------


def renamed(_: Translate) -> str:
    return _("Thing renamed")


async def test_a_change_is_in_the_audit_log_with_what_its_handler_noted(shop: Dashboard) -> None:
    async def rename(page: PageContext) -> Redirect:
        page.note(name=page.form.text("name"))
        await shop.core.tags.ensure(page.tx, PROJECT, [page.form.text("name")])
        return Redirect(page.url("/things"))

    shop.area.post("/things", access="project:write", title=renamed)(rename)
    answer = await shop.post("/things", name="new")

    assert to(answer) == f"{HOME}/things"
    assert await shop.has_tag("new")
    [entry] = await audited(shop.core)
    assert (entry["action"], entry["account_id"]) == ("trial.rename", shop.ann.account_id)
    assert (entry["detail"], entry["ip"]) == ('{"name": "new"}', "203.0.113.7")


def refusing(core: MemoryCore, error: ApiError) -> Callable[[PageContext], Awaitable[Redirect]]:
    async def change(page: PageContext) -> Redirect:
        await core.tags.ensure(page.tx, PROJECT, ["new"])
        raise error

    return change


async def test_a_refused_change_leaves_nothing_and_shows_its_page_again(shop: Dashboard) -> None:
    shown: list[ApiError | None] = []

    async def form_page(page: PageContext) -> Redirect:
        shown.append(page.error)
        return Redirect("/again")

    refusal = Conflict("it is taken")
    change = refusing(shop.core, refusal)
    shop.area.post("/things", access="project:write", form_page=form_page, title=renamed)(change)
    await shop.post("/things")

    assert shown == [refusal]
    assert not await shop.has_tag("new")
    assert await audited(shop.core) == []


async def test_a_disabled_project_is_not_changed_and_a_preview_is_no_change(
    shop: Dashboard,
) -> None:
    async with shop.core.db.transaction() as tx:
        await shop.core.projects.switch(tx, PROJECT, active=False)
    shop.area.post("/things", access="project:write", title=renamed)(handle)
    shop.area.post("/preview", access="project:write", read_only=True)(handle)

    refused, previewed = await shop.post("/things"), await shop.post("/preview")
    assert refused.status_code == 403
    assert to(previewed) == f"{HOME}/done"
    assert await audited(shop.core) == []


async def test_who_was_signed_out_while_they_sent_a_form_changes_nothing(shop: Dashboard) -> None:
    shop.area.post("/things", access="project:write", title=renamed)(handle)
    asked = await shop.form("/things")
    [signed_in] = await shop.ann.sessions()
    receive = asked.receive

    async def slowly() -> Any:
        async with shop.core.db.transaction() as tx:
            accounts = shop.ann.parts.accounts
            await accounts.end_session(tx, shop.ann.account_id, signed_in.session_id)
        return await receive()

    answer = await shop.get("/things", Request(asked.scope, slowly))
    assert to(answer) == "/dashboard/sign-in"
    assert await audited(shop.core) == []


async def test_nobody_signed_in_is_led_back_to_what_they_asked_for(shop: Dashboard) -> None:
    shop.area.get("/things", access="project:read")(handle)
    asked = request(f"{HOME}/things", query={"page": "2"}, project_id=PROJECT)
    by_htmx = request(
        f"{HOME}/things",
        headers={"hx-request": "true", "hx-current-url": f"http://msgsvc.test{HOME}/all"},
        project_id=PROJECT,
    )

    page, fragment = await shop.get("/things", asked), await shop.get("/things", by_htmx)
    assert to(page) == f"/dashboard/sign-in?next={HOME}/things%3Fpage%3D2"
    assert fragment.headers["hx-redirect"] == f"/dashboard/sign-in?next={HOME}/all"


async def test_a_literal_path_comes_before_one_with_a_parameter(shop: Dashboard) -> None:
    for path in ("/things/{thing}", "/things/new"):
        shop.area.get(path, access="project:read")(handle)

    paths = [route.path for route in shop.site().routes() if isinstance(route, Route)]
    assert paths[2:] == [
        "/dashboard/projects/{project_id}/things/new",
        "/dashboard/projects/{project_id}/things/{thing}",
        "/dashboard/{rest:path}",
    ]


async def test_cards_are_in_order_and_for_whom_they_are_there(shop: Dashboard) -> None:
    async def first(page: PageContext) -> str:
        return "first"

    async def second(page: PageContext) -> str:
        return "second"

    shop.area.card(order=20)(second)
    shop.area.card(order=10, access="project:own")(first)
    asked = request(project_id=PROJECT)
    shop.area.get("", access="customers:read")(handle)
    context = await shop.gate().context(shop.area.pages[0], asked, shop.session)
    shown = await shop.site().cards(context)
    viewers = await shop.site().cards(replace(context, role="viewer"))

    assert [card.shown for card in shown] == ["first", "second"]
    assert [card.shown for card in viewers] == ["second"]
