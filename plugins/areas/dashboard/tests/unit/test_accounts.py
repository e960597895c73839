"""Links, teams, guesses and the audit log, one part at a time."""

from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.api.endpoint import Router
from msgsvc_core.dashboard import PageContext, Pages, Redirect, Render
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.kernel.errors import Conflict, Forbidden, NotFound
from msgsvc_core.limits.memory import MemoryLimiter
from msgsvc_core.members import Role
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.plugins.audit import AuditRecord
from msgsvc_core.security import SecretBox
from msgsvc_dashboard.accounts import AccountLinks, Audit, Team
from msgsvc_dashboard.accounts.models import AuditEntry, AuditFilters, Browser, OneTimeLink, TooMany
from msgsvc_dashboard.accounts.service import digest_of
from msgsvc_dashboard.accounts.throttle import Throttle
from msgsvc_dashboard.settings import AccountSettings
from msgsvc_dashboard.team.subjects import AuditSubjects
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import PROJECT, MemoryCore
from plugins.areas.dashboard.tests.unit.browsers import ANN, page
from plugins.areas.dashboard.tests.unit.signing import Ann

# ---- the audit log -------------------------------------------------------------------------------


async def test_an_entry_says_who_did_what_when(ann: Ann, tx: Tx) -> None:
    audit = ann.core.get(Audit)
    record = AuditRecord(
        action="key.created",
        project_id=PROJECT,
        account_id=ann.account_id,
        target="key_1",
        detail={"scopes": ["*"]},
        ip="203.0.113.7",
    )
    await audit.record(tx, record)

    [entry] = await audit.of_project(tx, PROJECT, AuditFilters(), after=None, most=10)
    assert entry == AuditEntry(
        entry_id=entry.entry_id,
        project_id=PROJECT,
        account_id=ann.account_id,
        account_name="Ann Lee",
        at_ms=ann.core.clock.now_ms(),
        action="key.created",
        target="key_1",
        detail={"scopes": ["*"]},
        ip="203.0.113.7",
    )


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


async def get_label() -> None:
    """An endpoint of a thing that the project names."""


async def update_label() -> None:
    """An endpoint of a thing that the project names, in the audit log."""


@pytest.mark.parametrize(
    ("action", "target", "path"),
    [
        ("stock.rename", "itm_1", "/stock/itm_1"),
        ("stock.move", "itm_1 box/2", "/stock/itm_1/boxes/box%2F2"),
        ("stock.drop", "itm_1 lid_3", "/stock/itm_1"),
        ("stock.remove", "itm_1", ""),
        ("stock.rename", None, ""),
        ("stock.create_item", "itm_1", "/stock/itm_1"),
        ("stock.update_label", "blue", "/stock/labels/blue"),
        ("survey.add", "srv_1", ""),
    ],
)
async def test_an_entry_leads_to_what_it_is_about_where_there_is_a_page(
    core: MemoryCore, action: str, target: str | None, path: str
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
        pages.post(at, access="project:write", title=lambda _: _("Item changed"))(change(name))
    router.get("/v1/stock/{item_id}")(get_item)
    router.post("/v1/stock", audited=lambda _: _("Item created"))(create_item)
    pages.get("/stock/labels/{label}", access="project:read")(shown)
    router.get("/v1/stock/labels/{key}")(get_label)
    router.patch("/v1/stock/labels/{key}", audited=lambda _: _("Label changed"))(update_label)
    subjects = AuditSubjects(
        pages=lambda: pages.pages, endpoints=lambda: router.endpoints, recorded=list
    )
    entry = AuditEntry("aud_1", PROJECT, None, None, 0, action, target, {}, "")
    here = page(core, "owner")

    assert subjects.url(here, entry) == (here.url(path) if path else "")


# ---- links that work once ------------------------------------------------------------------------


async def test_what_opens_an_account_works_less_long_than_an_invitation(ann: Ann, tx: Tx) -> None:
    links, now_ms = ann.parts.account_links, ann.core.clock.now_ms()
    body = AddMemberBody(name="Bob", email="bob@shop.example", role="agent")
    _, invitation = await ann.parts.team.invite(tx, PROJECT, body, by="owner")
    tokens = [
        await links.for_account(tx, ann.account_id, "sign_in"),
        await links.for_account(tx, ann.account_id, "password"),
        invitation,
    ]

    ends_ms = [(await links.find(tx, token)).expires_at_ms for token in tokens]
    assert [(each - now_ms) / HOUR_MS for each in ends_ms] == [1, 24, 7 * 24]


@pytest.mark.parametrize("core", [{"base_url": "https://msgsvc.test"}], indirect=True)
async def test_the_database_has_no_link_that_works_and_there_is_none_for_nobody(
    ann: Ann, tx: Tx
) -> None:
    links = ann.parts.account_links
    token = await links.for_account(tx, ann.account_id, "sign_in")

    row = await tx.fetch_one("SELECT * FROM dashboard_account_links")
    assert row is not None
    assert row["digest"] == digest_of(token)
    assert token not in tuple(row)
    assert links.url(token) == f"https://msgsvc.test/dashboard/link/{token}"
    with pytest.raises(NotFound):
        await links.for_account(tx, "acc_nobody", "sign_in")


async def test_looking_at_a_link_leaves_it_and_who_comes_second_has_none(ann: Ann, tx: Tx) -> None:
    links = ann.core.get(AccountLinks)
    token = await links.for_account(tx, ann.account_id, "sign_in")
    found = await links.find(tx, token)

    ends_ms = ann.core.clock.now_ms() + HOUR_MS
    assert found == OneTimeLink("sign_in", ann.account_id, None, None, ends_ms)
    assert await links.use(tx, token) == found
    with pytest.raises(NotFound, match="was used"):
        await links.use(tx, token)
    with pytest.raises(NotFound):
        await links.find(tx, "token")


# ---- who works on a project ------------------------------------------------------------------------


def body_of(email: str = ANN.email, role: Role = "agent") -> AddMemberBody:
    return AddMemberBody(name="Ann", email=email, role=role)


async def add_member(
    core: MemoryCore, tx: Tx, role: Role, email: str = ANN.email, *, joined: str = ""
) -> str:
    """A member of the project, who has the account `joined`."""
    member = await core.members.add(tx, PROJECT, body_of(email, role))
    if joined:
        await core.members.link_account(tx, PROJECT, member.member_id, joined)
    return member.member_id


@pytest.mark.parametrize("by", ["admin", "agent", "viewer"])
async def test_only_owners_make_owners_and_end_them(core: MemoryCore, tx: Tx, by: Role) -> None:
    team, owner = core.get(Team), await add_member(core, tx, "owner")

    with pytest.raises(Forbidden):
        await team.invite(tx, PROJECT, body_of("bob@shop.example", "owner"), by=by)
    with pytest.raises(Forbidden):
        await team.remove(tx, PROJECT, owner, by=by)
    with pytest.raises(Forbidden):
        await team.change_role(tx, PROJECT, owner, "agent", by=by)


async def test_the_last_owner_stays_and_an_owner_beside_another_goes(ann: Ann, tx: Tx) -> None:
    team, accounts = ann.parts.team, ann.parts.accounts
    first = await add_member(ann.core, tx, "owner", joined=ann.account_id)
    with pytest.raises(Conflict, match="last owner"):
        await team.remove(tx, PROJECT, first, by="owner")
    bob = await accounts.create(tx, email="bob@shop.example", name="Bob")
    await add_member(ann.core, tx, "owner", bob.email, joined=bob.account_id)
    await team.remove(tx, PROJECT, first, by="owner")

    assert (await ann.core.members.get(tx, PROJECT, first)).status == "removed"


async def test_who_is_a_member_joins_no_second_time(ann: Ann, tx: Tx) -> None:
    former = "former@shop.example"
    await add_member(ann.core, tx, "agent", former, joined=ann.account_id)
    _, token = await ann.parts.team.invite(tx, PROJECT, body_of(), by="admin")

    with pytest.raises(Conflict, match="already"):
        await ann.parts.team.join(tx, token, ann.account)


async def test_who_is_removed_has_no_invitation_left(ann: Ann, tx: Tx) -> None:
    member, token = await ann.parts.team.invite(tx, PROJECT, body_of(), by="admin")
    await ann.parts.account_links.find(tx, token)
    await ann.parts.team.remove(tx, PROJECT, member.member_id, by="admin")

    with pytest.raises(NotFound):
        await ann.parts.account_links.find(tx, token)


@pytest.mark.parametrize("wanted", ["owner", "agent", None])
async def test_a_key_neither_makes_nor_ends_an_owner_who_signs_in(
    ann: Ann, tx: Tx, wanted: Role | None
) -> None:
    team = ann.parts.team
    before: Role = "agent" if wanted == "owner" else "owner"
    signs_in = await add_member(ann.core, tx, before, joined=ann.account_id)
    never = await add_member(ann.core, tx, before, "bob@shop.example")

    with pytest.raises(Conflict, match="in the dashboard"):
        await team.check_by_key(tx, PROJECT, signs_in, wanted)
    await team.check_by_key(tx, PROJECT, never, wanted)
    await team.check_by_key(tx, PROJECT, signs_in, before)


async def test_a_key_does_not_become_an_owner_by_their_email(ann: Ann, tx: Tx) -> None:
    team = ann.parts.team
    invited, _ = await team.invite(tx, PROJECT, body_of("eve@x.example", "owner"), by="owner")
    agent = await add_member(ann.core, tx, "agent", joined=ann.account_id)

    with pytest.raises(Conflict, match="there"):
        await team.check_owner_by_key(tx, PROJECT, invited.member_id)
    await team.check_owner_by_key(tx, PROJECT, agent)


# ---- how often somebody may guess --------------------------------------------------------------------


def throttle(**limits: int) -> Throttle:
    return Throttle(
        secrets=SecretBox(["a-key-for-tests-only-a-key-for-tests-only"]),
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
