"""What pages of a project count and offer, built from fakes."""

import pytest

from msgsvc_core.api.endpoint import Router
from msgsvc_core.dashboard.people import MOST_FOUND
from msgsvc_core.events import Event
from msgsvc_core.jobs import NewJob
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.members import Role
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_dashboard.developers.scopes import KeyAreas
from msgsvc_dashboard.overview import Counts, FoldJob
from msgsvc_dashboard.overview.counting import KEPT_DAYS
from msgsvc_dashboard.people.composing import ComposeForm
from msgsvc_dashboard.views.service import SavedViews
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from plugins.areas.dashboard.tests.unit.browsers import page

#: 15 January 2026, where a fake clock begins.
TODAY = FakeClock().now_ms() // DAY_MS


def event(name: str, **data: object) -> Event:
    return Event("evt_1", PROJECT, name, data, FakeClock().now_ms())


async def test_a_delivery_in_doubt_is_counted_apart_from_those_that_failed() -> None:
    counts = Counts(clock=FakeClock())
    tx = FakeTx(answers=[1])
    ended = ["failed", "unknown", "unknown"]
    await counts.count(tx, [event("delivery.failed", status=status) for status in ended])

    [(_, params)] = tx.statements
    assert '"delivery.failed","1"' in params["keys"]
    assert '"delivery.unknown","2"' in params["keys"]


async def test_what_no_chart_shows_costs_no_statement() -> None:
    tx = FakeTx()
    await Counts(clock=FakeClock()).count(tx, [event("button.clicked")])

    assert tx.statements == []


async def test_a_chart_has_a_place_for_each_day_and_ends_today() -> None:
    found = [
        {"day": TODAY - 2, "event": "auth.completed", "n": 3},
        {"day": TODAY, "event": "auth.completed", "n": 1},
    ]
    tx = FakeTx(answers=[found])
    by_day = await Counts(clock=FakeClock()).by_day(
        tx, PROJECT, ["auth.completed", "delivery.success"], 4
    )

    assert by_day == {"auth.completed": [0, 3, 0, 1], "delivery.success": [0, 0, 0, 0]}
    assert tx.statements[0][1]["since"] == TODAY - 3


async def test_only_hours_that_no_page_shows_are_folded_and_old_days_deleted() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    core.subscribers.person("sub_2", status="blocked")
    core.db.answers += [0, 0, 0, 0, 0, 1]
    job = claimed(NewJob("dashboard.fold"))
    ctx = FakeJobContext(core.db)
    counts = Counts(clock=core.clock)
    await FoldJob(db=core.db, counts=counts, subscribers=core.subscribers).fold(ctx, [job])

    _, folded, _, shares, purged, active = [params for _, params in core.db.statements]
    assert (folded["before"], shares["before"]) == ((TODAY - 2) * 24, TODAY - 2)
    assert purged["before"] == TODAY - KEPT_DAYS
    assert (active["day"], active["name"]) == (TODAY, "subscribers.active")
    assert ctx.completed == [job]


async def handle() -> None:
    """An endpoint of the API."""


@pytest.mark.parametrize(
    ("role", "offered"), [("owner", ["billing", "messages"]), ("admin", ["messages"])]
)
def test_a_key_may_open_what_its_maker_may_open(role: Role, offered: list[str]) -> None:
    messages, billing, hooks = (
        Router("messages"),
        Router("billing", owners_only=True),
        Router("hooks"),
    )
    for router, public in ((messages, False), (messages, False), (billing, False), (hooks, True)):
        router.get("/v1/x", public=public)(handle)
    endpoints = [*messages.endpoints, *billing.endpoints, *hooks.endpoints]
    areas = KeyAreas(endpoints=lambda: endpoints)

    assert areas.of(page(role)) == offered


def key_areas() -> KeyAreas:
    """Of two plugins: one describes its area in its second router."""
    bare = Router("messages")
    messages = Router("messages", description="Messages to one.", group="sending")
    auth = Router("auth", description="Sign-in.", group="sign_in")
    billing = Router("billing", description="The plan.", group="project", owners_only=True)
    own = Router("stock", description="Of a stranger's plugin.")
    routers = (bare, messages, auth, billing, own)
    for router in routers:
        router.get("/v1/x")(handle)
    endpoints = [each for router in routers for each in router.endpoints]
    return KeyAreas(endpoints=lambda: endpoints)


def test_scopes_stand_in_groups_each_with_what_it_is() -> None:
    groups = key_areas().groups(page("admin"))

    assert [
        (each.name, [(one.name, one.description) for one in each.members]) for each in groups
    ] == [
        ("sending", [("messages", "Messages to one.")]),
        ("sign_in", [("auth", "Sign-in.")]),
        ("other", [("stock", "Of a stranger's plugin.")]),
    ]


@pytest.mark.parametrize(
    ("role", "form", "scopes"),
    [
        ("owner", {}, ("*",)),
        ("admin", {"which": "all"}, ("*admin",)),
        ("owner", {"which": "read"}, ("*read",)),
        ("owner", {"which": "send", "areas": "billing"}, ("messages",)),
        ("owner", {"which": "sign_in"}, ("auth",)),
        ("owner", {"which": "some", "areas": "billing"}, ("billing",)),
    ],
)
def test_a_preset_stands_for_the_fewest_scopes(
    role: Role, form: dict[str, str], scopes: tuple[str, ...]
) -> None:
    assert key_areas().chosen(page(role, **form)) == scopes


@pytest.mark.parametrize(
    "form",
    [
        {"which": "some"},
        {"which": "some", "areas": "billing"},
        {"which": "some", "areas": "*"},
        {"which": "anything"},
    ],
)
def test_a_key_for_nothing_or_for_what_its_maker_may_not_open_is_refused(
    form: dict[str, str],
) -> None:
    with pytest.raises(ValidationFailed):
        key_areas().chosen(page("admin", **form))


def compose_form(core: FakeContext) -> ComposeForm:
    return ComposeForm(
        templates=core.templates,
        messages=core.messages,
        permissions=core.permissions,
        subscribers=core.subscribers,
        default_lang="en",
    )


async def test_a_search_offers_few_people_and_more_letters_than_a_name_has_find_nobody() -> None:
    core = plugin_context()
    for number in range(MOST_FOUND + 2):
        core.subscribers.person(f"sub_{number}", first_name="Anna")
    form = compose_form(core)

    assert len(await form.search(page(query={"who": " ann "}))) == MOST_FOUND
    assert await form.search(page(query={"who": "x" * 1000})) == []
    assert await form.search(page(query={"who": " "})) == []


async def test_a_preview_is_by_the_persons_messenger_and_before_by_each() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1", channel="messenger_b")
    form = compose_form(core)
    tried = [await form.tried(page(to=to, text="Hello", format="plain")) for to in ("sub_1", "")]
    empty = await form.tried(page(to="sub_1", text="", format="plain"))
    refused = await form.tried(page(to="sub_1", text="Hello", button_text_1="Open"))

    assert [
        preview.channels
        for each in tried
        if each is not None
        for _langs, previews in each.samples
        for preview in previews
    ] == [("messenger_b",), ("messenger_a", "messenger_b")]
    assert empty is None
    assert refused is not None
    assert refused.refused is not None
    assert not refused.samples


async def test_the_form_goes_on_without_a_template_and_a_person_that_are_gone() -> None:
    core, tx = plugin_context(), FakeTx()
    await core.templates.create(tx, PROJECT, CreateTemplateBody(key="hello", text="Hi"))
    await core.permissions.create(tx, PROJECT, CreatePermissionBody(key="news", title="News"))
    shown = await compose_form(core).shown(page(to="sub_gone", template="gone"))

    assert shown.values["person"] is None
    assert shown.values["is_lost"]
    assert shown.values["template"] is None
    assert [each.key for each in shown.values["templates"]] == ["hello"]
    assert [each.key for each in shown.values["permissions"]] == ["news"]


async def test_a_view_without_filters_is_refused_before_anything_is_read() -> None:
    views, tx = SavedViews(clock=FakeClock()), FakeTx()
    with pytest.raises(ValidationFailed):
        await views.save(
            tx, PROJECT, "acc_1", path="/messages", query="cursor=1", name="All", is_shared=False
        )

    assert tx.statements == []
