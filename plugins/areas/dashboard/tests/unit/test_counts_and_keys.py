"""What pages of a project count and offer."""

from typing import cast

import pytest

from msgsvc_core.api.endpoint import Router
from msgsvc_core.dashboard.people import MOST_FOUND
from msgsvc_core.db import Tx
from msgsvc_core.events import Event
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.members import Role
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.projects.models import ApiKey
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_dashboard.developers.scopes import KeyAreas
from msgsvc_dashboard.overview import Counts
from msgsvc_dashboard.overview import pages as overview
from msgsvc_dashboard.people.composing import ComposeForm
from msgsvc_dashboard.views.service import SavedViews
from msgsvc_devkit import FakeClock
from msgsvc_devkit.core import PROJECT, MemoryCore
from plugins.areas.dashboard.tests.unit.browsers import page

#: In place of a transaction, where nothing may be asked of the database.
NO_DATABASE = cast(Tx, None)


def event(name: str, *, days_ago: int = 0, **data: object) -> Event:
    return Event("evt_1", PROJECT, name, data, FakeClock().now_ms() - days_ago * DAY_MS)


async def test_a_delivery_in_doubt_is_counted_apart_from_those_that_failed(
    core: MemoryCore, tx: Tx
) -> None:
    counts, ended = core.get(Counts), ["failed", "unknown", "unknown"]
    await counts.count(tx, [event("delivery.failed", status=status) for status in ended])
    today = await counts.by_day(tx, PROJECT, ["delivery.failed", "delivery.unknown"], 1)

    assert today == {"delivery.failed": [1], "delivery.unknown": [2]}


async def test_what_no_chart_shows_costs_no_statement() -> None:
    await Counts(clock=FakeClock(), shown=lambda: [overview]).count(
        NO_DATABASE, [event("button.clicked")]
    )


async def test_a_chart_has_a_place_for_each_day_and_ends_today(core: MemoryCore, tx: Tx) -> None:
    counts, days_ago = core.get(Counts), [4, 2, 2, 2, 0]
    await counts.count(tx, [event("subscription.created", days_ago=each) for each in days_ago])
    by_day = await counts.by_day(tx, PROJECT, ["subscription.created", "delivery.success"], 4)

    assert by_day == {"subscription.created": [0, 3, 0, 1], "delivery.success": [0, 0, 0, 0]}


async def handle() -> None:
    """An endpoint of the API."""


@pytest.mark.parametrize(
    ("role", "offered"), [("owner", ["billing", "messages"]), ("admin", ["messages"])]
)
async def test_a_key_may_open_what_its_maker_may_open(
    core: MemoryCore, role: Role, offered: list[str]
) -> None:
    messages, billing, hooks = (
        Router("messages"),
        Router("billing", owners_only=True),
        Router("hooks"),
    )
    for router, public in ((messages, False), (messages, False), (billing, False), (hooks, True)):
        router.get("/v1/x", public=public)(handle)
    endpoints = [*messages.endpoints, *billing.endpoints, *hooks.endpoints]
    areas = KeyAreas(endpoints=lambda: endpoints)

    assert areas.of(page(core, role)) == offered


def key_areas() -> KeyAreas:
    """Of two plugins: one describes its area in its second router."""
    bare = Router("messages")
    messages = Router(
        "messages", description="Messages to one.", group="sending", key_purpose="send"
    )
    auth = Router("auth", description="Sign-in.", group="sign_in", key_purpose="sign_in")
    billing = Router("billing", description="The plan.", group="project", owners_only=True)
    own = Router("stock", description="Of a stranger's plugin.")
    routers = (bare, messages, auth, billing, own)
    for router in routers:
        router.get("/v1/x")(handle)
    endpoints = [each for router in routers for each in router.endpoints]
    return KeyAreas(endpoints=lambda: endpoints)


async def test_scopes_stand_in_groups_each_with_what_it_is(core: MemoryCore) -> None:
    groups = key_areas().groups(page(core, "admin"))

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
async def test_a_preset_stands_for_the_fewest_scopes(
    core: MemoryCore, role: Role, form: dict[str, str], scopes: tuple[str, ...]
) -> None:
    assert key_areas().chosen(page(core, role, **form)) == scopes


async def test_a_preset_shows_the_areas_of_any_plugin_that_declare_its_purpose(
    core: MemoryCore,
) -> None:
    areas = [
        Router("messages", key_purpose="send"),
        Router("stock", key_purpose="send"),
        Router("billing", key_purpose="send", owners_only=True),
    ]
    for router in areas:
        router.get("/v1/x")(handle)
    endpoints = [each for router in areas for each in router.endpoints]
    presets = KeyAreas(endpoints=lambda: endpoints).presets(page(core, "admin"))

    assert [(each.name, each.areas) for each in presets] == [
        ("all", ()),
        ("read", ()),
        ("send", ["messages", "stock"]),
    ]


async def count_stock() -> None:
    """An endpoint of a plugin that is none of ours."""


async def sell_stock() -> None:
    """Another."""


async def get_project() -> None:
    """Changes nothing."""


@pytest.mark.parametrize(
    ("scopes", "tried_with"),
    [
        (("*",), "get_project"),
        (("stock",), "sell_stock"),
        (("*read",), "get_project"),
        (("project", "stock"), "get_project"),
        (("hidden",), ""),
    ],
)
def test_a_new_key_is_tried_with_the_first_request_that_it_opens(
    scopes: tuple[str, ...], tried_with: str
) -> None:
    stock, project, hidden = Router("stock"), Router("project"), Router("hidden")
    stock.get("/v1/stock", first_call=65)(count_stock)
    stock.post("/v1/stock", first_call=35)(sell_stock)
    project.get("/v1/project", first_call=40)(get_project)
    hidden.get("/v1/hidden")(handle)
    endpoints = [*stock.endpoints, *project.endpoints, *hidden.endpoints]
    key = ApiKey("key_1", PROJECT, "Server", "msk_1", scopes)

    assert KeyAreas(endpoints=lambda: endpoints).first_call(key) == tried_with


@pytest.mark.parametrize(
    "form",
    [
        {"which": "some"},
        {"which": "some", "areas": "billing"},
        {"which": "some", "areas": "*"},
        {"which": "anything"},
    ],
)
async def test_a_key_for_nothing_or_for_what_its_maker_may_not_open_is_refused(
    core: MemoryCore, form: dict[str, str]
) -> None:
    with pytest.raises(ValidationFailed):
        key_areas().chosen(page(core, "admin", **form))


async def test_a_search_offers_few_people_and_more_letters_than_a_name_has_find_nobody(
    core: MemoryCore, tx: Tx
) -> None:
    for number in range(MOST_FOUND + 2):
        await core.person(tx, f"sub_{number}")
    form = core.get(ComposeForm)

    assert len(await form.search(page(core, tx=tx, query={"who": " ann "}))) == MOST_FOUND
    assert await form.search(page(core, tx=tx, query={"who": "x" * 1000})) == []
    assert await form.search(page(core, tx=tx, query={"who": " "})) == []


async def test_a_preview_is_by_the_persons_messenger_and_before_by_each(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, "sub_1", channel="messenger_b")
    form = core.get(ComposeForm)
    tried = [
        await form.tried(page(core, tx=tx, to=to, text="Hello", format="plain"))
        for to in ("sub_1", "")
    ]
    empty = await form.tried(page(core, tx=tx, to="sub_1", text="", format="plain"))
    refused = await form.tried(page(core, tx=tx, to="sub_1", text="Hello", button_text_1="Open"))

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


async def test_the_form_goes_on_without_a_template_and_a_person_that_are_gone(
    core: MemoryCore, tx: Tx
) -> None:
    await core.templates.create(tx, PROJECT, CreateTemplateBody(key="hello", text="Hi"))
    await core.permissions.create(tx, PROJECT, CreatePermissionBody(key="news", title="News"))
    shown = await core.get(ComposeForm).shown(page(core, tx=tx, to="sub_gone", template="gone"))

    assert shown.values["person"] is None
    assert shown.values["is_lost"]
    assert shown.values["template"] is None
    assert [each.key for each in shown.values["templates"]] == ["hello"]
    assert [each.key for each in shown.values["permissions"]] == ["news"]


async def test_a_view_without_filters_is_refused_before_anything_is_read(core: MemoryCore) -> None:
    view = {"path": "/messages", "query": "cursor=1", "name": "All"}

    with pytest.raises(ValidationFailed):
        await core.get(SavedViews).save(NO_DATABASE, PROJECT, "acc_1", **view, is_shared=False)
