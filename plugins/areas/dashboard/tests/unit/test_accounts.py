"""Links, teams, guesses and the audit log, one part at a time, built from fakes."""

from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.api.endpoint import Router
from msgsvc_core.dashboard import PageContext, Pages, Redirect, Render
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.kernel.errors import Conflict, Forbidden, NotFound
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.members import Role
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.plugins.audit import AuditRecord
from msgsvc_dashboard.accounts import AccountLinks, Audit, Team
from msgsvc_dashboard.accounts.models import AuditEntry, AuditFilters, Browser, OneTimeLink, TooMany
from msgsvc_dashboard.accounts.service import digest_of
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.settings import AccountSettings
from msgsvc_dashboard.team.subjects import AuditSubjects
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx, fake_secrets
from plugins.areas.dashboard.tests.unit.browsers import ANN, page
from plugins.areas.dashboard.tests.unit.fakes import AccountsInMemory, LinksInMemory

# ---- the audit log -------------------------------------------------------------------------------


async def test_an_entry_says_who_did_what_when() -> None:
    clock, tx = FakeClock(), FakeTx()
    record = AuditRecord(
        action="key.created",
        project_id=PROJECT,
        account_id="acc_ann",
        target="key_1",
        detail={"scopes": ["*"]},
        ip="203.0.113.7",
    )
    await Audit(clock=clock).record(tx, record)

    [row] = tx.rows["dashboard_audit"]
    assert (row["action"], row["target"], row["account_id"]) == ("key.created", "key_1", "acc_ann")
    assert (row["at_ms"], row["detail"], row["ip"]) == (
        clock.now_ms(),
        '{"scopes": ["*"]}',
        "203.0.113.7",
    )


async def test_entries_are_of_one_person_where_they_are_named() -> None:
    audit, tx = Audit(clock=FakeClock()), FakeTx(answers=[[], [], []])
    await audit.of_project(tx, PROJECT, AuditFilters(), after=None, most=10)
    await audit.of_project(tx, PROJECT, AuditFilters(account_id="acc_ann"), after="aud_9", most=10)
    await audit.of_account(tx, "acc_ann", after=None, most=10)

    assert [params for _, params in tx.statements] == [
        {"most": 10, "project_id": PROJECT},
        {"most": 10, "project_id": PROJECT, "account_id": "acc_ann", "after": "aud_9"},
        {"most": 10, "account_id": "acc_ann"},
    ]


async def shown(page: PageContext) -> Render:
    return Render("shown.html")


def change(name: str) -> Callable[[PageContext], Awaitable[Redirect]]:
    async def handler(page: PageContext) -> Redirect:
        return Redirect("/")

    handler.__name__ = name
    return handler


async def get_item() -> None:
    """An endpoint of the API."""


async def create_item() -> None:
    """An endpoint that is in the audit log."""


@pytest.mark.parametrize(
    ("action", "target", "path"),
    [
        ("stock.rename", "itm_1", "/stock/itm_1"),
        ("stock.move", "itm_1 box/2", "/stock/itm_1/boxes/box%2F2"),
        ("stock.drop", "itm_1 lid_3", "/stock/itm_1"),
        ("stock.remove", "itm_1", ""),
        ("stock.rename", None, ""),
        ("stock.create_item", "itm_1", "/stock/itm_1"),
        ("survey.add", "srv_1", ""),
    ],
)
def test_an_entry_leads_to_what_it_is_about_where_there_is_a_page(
    action: str, target: str | None, path: str
) -> None:
    pages, router = Pages("stock", package="shop"), Router("stock")
    pages.get("/stock/{item_id}", access="project:read")(shown)
    pages.get("/stock/{item_id}/boxes/{box}", access="project:read")(shown)
    for name, at in (
        ("rename", "/stock/{item_id}/rename"),
        ("move", "/stock/{item_id}/boxes/{box}/move"),
        ("drop", "/stock/{item_id}/lids/{lid}/drop"),
        ("remove", "/stock/{item_id}/delete"),
    ):
        pages.post(at, access="project:write")(change(name))
    router.get("/v1/stock/{item_id}")(get_item)
    router.post("/v1/stock", audited=True)(create_item)
    subjects = AuditSubjects(pages=lambda: pages.pages, endpoints=lambda: router.endpoints)
    entry = AuditEntry("aud_1", PROJECT, None, None, 0, action, target, {}, "")
    here = page("owner")

    assert subjects.url(here, entry) == (here.url(path) if path else "")


# ---- links that work once ------------------------------------------------------------------------


def links(clock: FakeClock) -> AccountLinks:
    accounts = AccountsInMemory(ANN)
    return AccountLinks(clock=clock, base_url="https://msgsvc.test", accounts=accounts)


async def test_what_opens_an_account_works_less_long_than_an_invitation() -> None:
    clock, tx = FakeClock(), FakeTx(answers=[0])
    made = links(clock)
    for purpose in ("sign_in", "password"):
        await made.for_account(tx, ANN.account_id, purpose)
    await made.for_member(tx, PROJECT, "mem_1")

    hours = [
        (row["expires_at_ms"] - clock.now_ms()) // HOUR_MS
        for row in tx.rows["dashboard_account_links"]
    ]
    assert hours == [1, 24, 7 * 24]


async def test_the_database_has_no_link_that_works_and_there_is_none_for_nobody() -> None:
    tx = FakeTx()
    token = await links(FakeClock()).for_account(tx, ANN.account_id, "sign_in")

    [row] = tx.rows["dashboard_account_links"]
    assert row["digest"] == digest_of(token)
    assert token not in row.values()
    assert links(FakeClock()).url(token) == f"https://msgsvc.test/dashboard/link/{token}"
    with pytest.raises(NotFound):
        await links(FakeClock()).for_account(FakeTx(), "acc_nobody", "sign_in")


async def test_looking_at_a_link_leaves_it_and_who_comes_second_has_none() -> None:
    row = {
        "purpose": "sign_in",
        "account_id": ANN.account_id,
        "project_id": None,
        "member_id": None,
        "expires_at_ms": 1,
    }
    made = links(FakeClock())
    found = await made.find(FakeTx(answers=[[row]]), "token")

    assert found == OneTimeLink("sign_in", ANN.account_id, None, None, 1)
    assert await made.use(FakeTx(answers=[[row], 1]), "token") == found
    with pytest.raises(NotFound, match="was used"):
        await made.use(FakeTx(answers=[[row], 0]), "token")
    with pytest.raises(NotFound):
        await made.find(FakeTx(answers=[[]]), "token")


# ---- who works on a project ------------------------------------------------------------------------


class TeamOfShop:
    """A team, whose members are in memory."""

    def __init__(self) -> None:
        self.core: FakeContext = plugin_context()
        self.links = LinksInMemory(clock=self.core.clock)
        self.accounts = AccountsInMemory(ANN)
        self.team = Team(
            members=self.core.members, account_links=self.links, accounts=self.accounts
        )
        self.tx = FakeTx()

    async def member(self, role: Role, email: str = "ann@shop.example", *, joined: str = "") -> str:
        body = AddMemberBody(name="Ann", email=email, role=role)
        member = await self.core.members.add(self.tx, PROJECT, body)
        if joined:
            await self.core.members.link_account(self.tx, PROJECT, member.member_id, joined)
        return member.member_id


@pytest.mark.parametrize("by", ["admin", "agent", "viewer"])
async def test_only_owners_make_owners_and_end_them(by: Role) -> None:
    shop = TeamOfShop()
    owner = await shop.member("owner")
    body = AddMemberBody(name="Bob", email="bob@shop.example", role="owner")

    with pytest.raises(Forbidden):
        await shop.team.invite(shop.tx, PROJECT, body, by=by)
    with pytest.raises(Forbidden):
        await shop.team.remove(shop.tx, PROJECT, owner, by=by)
    with pytest.raises(Forbidden):
        await shop.team.change_role(shop.tx, PROJECT, owner, "agent", by=by)


async def test_the_last_owner_stays_and_an_owner_beside_another_goes() -> None:
    shop = TeamOfShop()
    first = await shop.member("owner", joined=ANN.account_id)
    with pytest.raises(Conflict, match="last owner"):
        await shop.team.remove(shop.tx, PROJECT, first, by="owner")
    with pytest.raises(Conflict, match="last owner"):
        await shop.team.change_role(shop.tx, PROJECT, first, "admin", by="owner")
    await shop.member("owner", "bob@shop.example", joined="acc_bob")
    removed = await shop.team.remove(shop.tx, PROJECT, first, by="owner")

    assert removed.member_id == first
    assert shop.core.members.by_id[first].status == "removed"


async def test_an_invitation_makes_a_member_of_the_account_that_it_names_alone() -> None:
    shop = TeamOfShop()
    body = AddMemberBody(name="Ann", email=ANN.email, role="agent")
    member, token = await shop.team.invite(shop.tx, PROJECT, body, by="admin")
    stranger = shop.accounts.add("bob@shop.example")
    with pytest.raises(Forbidden, match="another email"):
        await shop.team.join(shop.tx, token, stranger)
    again = await shop.team.invite_again(shop.tx, PROJECT, member.member_id, by="admin")
    await shop.team.join(shop.tx, again, ANN)

    assert shop.core.members.accounts == {member.member_id: ANN.account_id}
    with pytest.raises(Conflict, match="joined"):
        await shop.team.invite_again(shop.tx, PROJECT, member.member_id, by="admin")


async def test_who_is_a_member_joins_no_second_time() -> None:
    shop = TeamOfShop()
    await shop.member("agent", "former@shop.example", joined=ANN.account_id)
    body = AddMemberBody(name="Ann", email=ANN.email, role="agent")
    _, token = await shop.team.invite(shop.tx, PROJECT, body, by="admin")

    with pytest.raises(Conflict, match="already"):
        await shop.team.join(shop.tx, token, ANN)


async def test_an_invitation_of_who_was_removed_is_taken_back() -> None:
    shop = TeamOfShop()
    body = AddMemberBody(name="Ann", email=ANN.email, role="agent")
    member, token = await shop.team.invite(shop.tx, PROJECT, body, by="admin")
    await shop.core.members.remove(shop.tx, PROJECT, member.member_id)

    with pytest.raises(NotFound, match="taken back"):
        await shop.team.join(shop.tx, token, ANN)


async def test_who_is_removed_has_no_invitation_left() -> None:
    shop = TeamOfShop()
    body = AddMemberBody(name="Ann", email=ANN.email, role="agent")
    member, token = await shop.team.invite(shop.tx, PROJECT, body, by="admin")
    await shop.links.find(shop.tx, token)
    await shop.team.remove(shop.tx, PROJECT, member.member_id, by="admin")

    with pytest.raises(NotFound):
        await shop.links.find(shop.tx, token)


@pytest.mark.parametrize("wanted", ["owner", "agent", None])
async def test_a_key_neither_makes_nor_ends_an_owner_who_signs_in(wanted: Role | None) -> None:
    shop = TeamOfShop()
    before: Role = "agent" if wanted == "owner" else "owner"
    signs_in = await shop.member(before, joined=ANN.account_id)
    never = await shop.member(before, "bob@shop.example")

    with pytest.raises(Conflict, match="in the dashboard"):
        await shop.team.check_by_key(shop.tx, PROJECT, signs_in, wanted)
    await shop.team.check_by_key(shop.tx, PROJECT, never, wanted)
    await shop.team.check_by_key(shop.tx, PROJECT, signs_in, before)


async def test_a_key_does_not_become_an_owner_by_their_email() -> None:
    shop = TeamOfShop()
    body = AddMemberBody(name="Ann", email=ANN.email, role="owner")
    invited, _ = await shop.team.invite(shop.tx, PROJECT, body, by="owner")
    agent = await shop.member("agent", "bob@shop.example", joined="acc_bob")

    with pytest.raises(Conflict, match="there"):
        await shop.team.check_owner_by_key(shop.tx, PROJECT, invited.member_id)
    await shop.team.check_owner_by_key(shop.tx, PROJECT, agent)


# ---- how often somebody may guess --------------------------------------------------------------------


def throttle(**limits: int) -> Throttle:
    return Throttle(
        secrets=fake_secrets(),
        settings=AccountSettings(**limits),
        limiter=MemoryLimiter(FakeClock()),
    )


async def test_strangers_guesses_leave_the_owners_browser_its_tries() -> None:
    tries = throttle(tries_per_email=1)
    home = Browser("198.51.100.7", "", tries.new_device("acc_ann"))
    guesses = [
        await tries.password("ann@shop.example", "acc_ann", Browser(f"203.0.113.{number}", ""))
        for number in range(2)
    ]

    assert guesses[0] is None
    assert isinstance(guesses[1], TooMany)
    assert await tries.password("ann@shop.example", "acc_ann", home) is None


async def test_the_owners_browser_has_a_limit_of_its_own_wherever_it_is() -> None:
    tries = throttle(tries_per_browser=2)
    device = tries.new_device("acc_ann")
    tried = [
        await tries.password("ann@shop.example", "acc_ann", Browser(f"198.51.100.{n}", "", device))
        for n in range(3)
    ]

    assert [type(each) for each in tried] == [type(None), type(None), TooMany]


@pytest.mark.parametrize("device", ["", "x", "x.", "x.é", ".{seal}", "{nonce}.{seal}x"])
async def test_no_browser_makes_its_proof_itself_or_takes_anothers(device: str) -> None:
    tries = throttle(tries_per_email=1, tries_per_browser=100)
    nonce, _, seal = tries.new_device("acc_ann").partition(".")
    forged = Browser("203.0.113.7", "", device.format(nonce=nonce, seal=seal))
    bobs = Browser("203.0.113.7", "", tries.new_device("acc_bob"))
    await tries.password("ann@shop.example", "acc_ann", forged)

    assert isinstance(await tries.password("ann@shop.example", "acc_ann", forged), TooMany)
    assert isinstance(await tries.password("ann@shop.example", "acc_ann", bobs), TooMany)


async def test_who_is_over_the_addresses_limit_takes_no_try_of_an_email() -> None:
    tries = throttle(tries_per_address=1, tries_per_email=1)
    await tries.password("bob@shop.example", None, Browser("2001:db8::1", ""))
    neighbour = await tries.password("ann@shop.example", None, Browser("2001:db8::2", ""))
    elsewhere = await tries.password("ann@shop.example", None, Browser("2001:db8:0:1::1", ""))

    assert isinstance(neighbour, TooMany)
    assert 0 < neighbour.retry_after_s <= 900
    assert elsewhere is None


async def test_codes_are_counted_by_account_and_apart_from_passwords() -> None:
    tries, stranger = throttle(tries_of_codes=1), Browser("203.0.113.7", "")
    home = Browser("203.0.113.7", "", tries.new_device("acc_ann"))
    first = await tries.code("acc_ann", stranger)
    second = await tries.code("acc_ann", Browser("203.0.113.8", ""))

    assert (first, type(second)) == (None, TooMany)
    assert await tries.code("acc_ann", home) is None
    assert await tries.password("ann@shop.example", "acc_ann", stranger) is None
