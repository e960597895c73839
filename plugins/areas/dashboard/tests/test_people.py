"""Subscribers, messages, tags, permissions and templates: the life of each page, and who may do what."""

import re
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, DeliveryReported, MessageReceived
from msgsvc_core.messages.templates import Templates
from msgsvc_core.routing import Routes
from msgsvc_core.routing.models import CreateRouteBody
from msgsvc_core.service import Service
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.tags import Tags
from msgsvc_dashboard import plugin
from msgsvc_dashboard.people.permissions import typed_count
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory

WITH_DASHBOARD: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}

NASTY = '<script>alert(1)</script>"><img src=x onerror=alert(1)>{{7*7}}\u202e'


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(**WITH_DASHBOARD)


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id)


async def subscribed(service: Service, project_id: str, name: str, **more: Any) -> str:
    async with service.db.transaction() as tx:
        made = await service.subscribers.ensure(
            tx,
            project_id,
            "messenger_a",
            ChannelUser(f"user-{name}", name, name.lower()[:8], "en"),
            f"chat-{name}",
            source="api",
            **more,
        )
    return made.subscriber_id


def check_escaped(text: str) -> None:
    """What was written stands there as text alone."""
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "49" not in re.findall(r"alert\(1\)&gt;(\d+)", text)
    assert "&lt;script&gt;alert(1)" in text


async def test_a_person_whose_program_answers_is_shown_as_such(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    before = (await owner.get(f"/subscribers/{ann}")).text
    await service.inbound.receive(
        "messenger_a",
        MessageReceived(
            update_id="1", chat_id="chat-Ann", user=ChannelUser("user-Ann", "Ann"), text="Hi"
        ),
    )
    await settled(service)
    for _ in range(5):
        async with service.db.transaction() as tx:
            await service.outbox.may_answer(tx, "messenger_a", "chat-Ann", "stranger")
    after = (await owner.get(f"/subscribers/{ann}")).text

    assert "may be answering" not in before
    assert "4 automatic answers were withheld here" in after


@pytest.mark.both_databases
async def test_a_team_finds_a_person_and_changes_what_is_known_of_them(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", external_id="crm-1")
    await subscribed(service, owner.project_id, NASTY)
    at = f"/subscribers/{ann}"
    await owner.post("/permissions", {"key": "news", "title-en": "News"})

    everybody = (await owner.get("/subscribers")).text
    tagged = await owner.post(f"{at}/tags/add", {"tag": "vip"})
    granted = await owner.post(f"{at}/permission", {"permission": "news", "granted": "yes"})
    edited = await owner.post(
        f"{at}/edit", {"external_id": "crm-2", "lang": "ru", "attributes": '{"city": "Riga"}'}
    )
    found = [
        (await owner.get("/subscribers", **filters)).text
        for filters in (
            {"query": "aN"},
            {"query": "crm-2"},
            {"tag": "vip"},
            {"permission": "news"},
            {"lang": "ru", "status": "active"},
        )
    ]
    shown = (await owner.get(at)).text

    assert (tagged.status_code, granted.status_code, edited.status_code) == (303, 303, 303)
    check_escaped(everybody)
    assert all(ann in text and "alert(1)" not in text for text in found)
    for told in ("crm-2", "Riga", "vip", "Subscribed", "Granted a permission"):
        assert told in shown


async def test_what_was_typed_is_shown_again_with_what_is_wrong_with_it(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    typed = {"external_id": NASTY, "lang": "en", "attributes": "[1"}

    refused = await owner.post(f"/subscribers/{ann}/edit", typed)
    no_tag = await owner.post(f"/subscribers/{ann}/tags/add", {"tag": "two words"})
    no_filter = await owner.get("/subscribers", created_after="yesterday")

    assert (refused.status_code, no_tag.status_code) == (400, 400)
    assert "attributes: must be a JSON object" in refused.text
    assert "[1" in refused.text
    check_escaped(refused.text)
    assert 'value="two words"' in no_tag.text
    assert "created_after: must be a day" in no_filter.text
    assert ann in no_filter.text


async def test_a_person_leaves_comes_back_and_is_erased(service: Service, owner: Visitor) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    at = f"/subscribers/{ann}"

    await owner.post(f"{at}/unsubscribe")
    left = (await owner.get(at)).text
    await owner.post(f"{at}/subscribe")
    back = (await owner.get(at)).text
    erased = await owner.post(f"{at}/erase")
    gone = await owner.get(at)

    assert "Subscribe again" in left
    assert "Subscribe again" not in back
    assert (erased.status_code, gone.status_code) == (303, 404)


async def test_an_invitation_shows_a_link_and_a_code_for_each_messenger(
    service: Service, owner: Visitor
) -> None:
    made = await owner.post("/invite", {"tags": ["spring"], "new_tags": "shop", "days": "7"})
    refused = await owner.post("/invite", {"new_tags": "a,b!", "days": "x"})

    picture = re.search(r'<img src="(/qr/[^"]+\.svg)"', made.text)
    assert picture is not None
    assert (await owner.client.get(picture[1])).headers["content-type"] == "image/svg+xml"
    assert made.text.count("<figure>") == 2
    assert refused.status_code == 400
    assert 'value="a,b!"' in refused.text
    async with service.db.read() as tx:
        tags = await service.get(Tags).list_all(tx, owner.project_id, 1)
    assert [tag.name for tag in tags] == ["shop", "spring"]


async def test_a_rich_text_is_previewed_as_lines(service: Service, owner: Visitor) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    text = "<h2>Order</h2><ul><li>Tea</li></ul>"

    page = await owner.get("/messages/new", to=ann)
    written = {"to": ann, "text": text, "format": "rich"}
    previewed = await owner.post("/messages/new/preview", written)

    assert '<option value="rich">Rich text</option>' in page.text
    assert '<span class="mark-bold">Order</span><span class="">\n\n• Tea</span>' in previewed.text


async def test_an_invitation_shows_what_to_write_where_a_link_can_not_carry_it(
    service: Service, owner: Visitor
) -> None:
    channel = service.channels["messenger_a"]
    channel.capabilities = replace(channel.capabilities, start_links=False)
    made = await owner.post("/invite", {"new_tags": "shop", "days": "7"})
    written = re.search(r"Write there: <strong>(start [^<]+)</strong>", made.text)
    assert written is not None
    user = ChannelUser("77", "Tim")
    await service.inbound.receive(
        channel.key,
        MessageReceived(
            update_id="w1", chat_id="c77", user=user, text=written[1], message_ref="w1"
        ),
    )
    await settled(service)
    async with service.db.read() as tx:
        found = await service.subscribers.find_by_user(tx, owner.project_id, "messenger_a", "77")

    assert made.text.count("Write there:") == 1
    assert found is not None
    assert found.status == "active"


async def test_a_message_is_previewed_sent_followed_and_taken_back(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", external_id="crm-1")
    written = {
        "to": ann,
        "text": "**Sale** <b>",
        "format": "markdown",
        "button_text_1": "Open",
        "button_url_1": "https://shop.example/a",
    }

    search = await owner.get("/messages/new", who="an")
    page = await owner.get("/messages/new", to=ann)
    previewed = await owner.post("/messages/new/preview", written)
    wrong = await owner.post("/messages/new", {**written, "button_url_1": "javascript:alert(1)"})
    sent = await owner.post("/messages/new", written)
    await settled(service)
    at = sent.headers["location"]
    shown = (await owner.client.get(at)).text
    listed = (await owner.get("/messages", status="sent")).text
    editor = (await owner.client.get(at + "/edit")).text
    looks = await owner.post(at + "/edit/preview", {**written, "text": "**Over**"})
    edited = await owner.post(at + "/edit", {**written, "text": "Over"})
    deleted = await owner.post(at + "/delete")
    await settled(service)
    after = (await owner.client.get(at)).text

    assert f"to={ann}" in search.text
    assert page.status_code == 200
    assert '<span class="mark-bold">Sale</span><span class=""> &lt;b&gt;</span>' in previewed.text
    assert "messenger_b" not in previewed.text
    assert wrong.status_code == 400
    assert "buttons[0][0].url" in wrong.text
    assert "**Sale** &lt;b&gt;</textarea>" in wrong.text
    assert "Sent" in shown
    assert 'value="https://shop.example/a"' in editor
    assert '<span class="mark-bold">Over</span>' in looks.text
    assert "**Over**</textarea>" in looks.text
    assert at.rpartition("/")[2] in listed
    assert (edited.status_code, deleted.status_code) == (303, 303)
    assert "Deleted" in after
    assert "/edit" not in after


async def test_words_of_a_member_are_a_persons_and_a_template_is_automatic(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    await owner.post("/new-template", {"key": "order", "text": "Hello", "format": "plain"})
    await owner.post("/messages/new", {"to": ann, "text": "Hello Ann"})
    await owner.post("/messages/new", {"to": ann, "template": "order"})
    await settled(service)
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    sent = {one.message.text: one.message.by_person for one in channel.sent}

    assert (sent["Hello Ann"], sent["Hello"]) == (True, False)


async def test_a_message_by_a_route_shows_its_steps_and_what_was_reported(
    make_service: ServiceFactory,
) -> None:
    names = ("messenger_a", "messenger_b", "messenger_c")
    service = await make_service(
        channels={name: {"plugin": "recording"} for name in names}, **WITH_DASHBOARD
    )
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    await subscribed(service, owner.project_id, "Ann", external_id="crm-1")
    channel = service.channels["messenger_a"]
    channel.capabilities = replace(channel.capabilities, reports=frozenset({"delivered", "read"}))
    steps = [
        {"channel": "messenger_b"},
        {"channel": "messenger_a", "until": "read", "within_seconds": 60},
        {"channel": "messenger_c"},
    ]
    body = CreateRouteBody.model_validate({"name": "All", "steps": steps})
    async with service.db.transaction() as tx:
        route = await service.get(Routes).create(tx, owner.project_id, body)
    message = await service.messages.send(
        owner.project_id, external_id="crm-1", route_id=route.route_id, text="Hi"
    )
    await settled(service)
    at = f"/messages/{message.message_id}"
    waiting = (await owner.get(at)).text
    async with service.db.read() as tx:
        ref = (await service.messages.find(tx, owner.project_id, message.message_id)).message_ref
    assert ref is not None
    report = DeliveryReported(update_id="1", message_ref=ref, state="read")
    await service.inbound.receive("messenger_a", report)
    read = (await owner.get(at)).text

    assert "Not on this channel" in waiting
    assert "reported as read in time" in waiting
    assert "messenger_a: Sent" in waiting
    assert "reported as read in time" not in read
    assert "Delivered" in read
    assert "/edit" not in read


async def test_a_tag_is_made_renamed_and_deleted(service: Service, owner: Visitor) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    await owner.post("/tags", {"name": "vip"})
    await owner.post(f"/subscribers/{ann}/tags/add", {"tag": "vip"})

    again = await owner.post("/tags", {"name": "vip"})
    wrong = await owner.post("/tags", {"name": NASTY})
    renamed = await owner.post("/tags/vip/rename", {"name": "Важные"})
    listed = (await owner.get("/tags")).text
    deleted = await owner.post("/tags/Важные/delete")
    missing = await owner.post("/tags/Важные/delete")

    assert (again.status_code, wrong.status_code) == (409, 400)
    assert 'value="&lt;script&gt;' in wrong.text
    assert (renamed.status_code, deleted.status_code, missing.status_code) == (303, 303, 404)
    assert "1 subscriber loses this tag" in listed
    assert "Важные" not in (await owner.get("/tags")).text


async def test_deleting_a_permission_asks_for_the_number_of_those_who_granted_it(
    service: Service, owner: Visitor
) -> None:
    await owner.post("/permissions", {"key": "news", "title-en": "News", "default": "1"})
    await subscribed(service, owner.project_id, "Ann")
    asked = (await owner.get("/permissions/news")).text
    await subscribed(service, owner.project_id, "Bob")

    too_few = await owner.post("/permissions/news/delete", {"confirmed": "1"})
    no_number = await owner.post("/permissions/news/delete", {"confirmed": "all"})
    still_there = await owner.get("/permissions/news")
    deleted = await owner.post("/permissions/news/delete", {"confirmed": "2"})
    gone = await owner.get("/permissions/news")

    assert "1 active subscriber granted it. Enter that number" in asked
    assert (too_few.status_code, no_number.status_code) == (409, 400)
    assert "2 active subscribers granted it. Enter that number" in too_few.text
    assert (still_there.status_code, deleted.status_code, gone.status_code) == (200, 303, 404)


@pytest.mark.parametrize(
    ("typed", "count"),
    [
        ("12500", 12500),
        ("12,500", 12500),
        (" 12\xa0500 ", 12500),
        ("", 0),
        ("all", None),
        ("-1", None),
    ],
)
def test_a_count_is_typed_with_separators_or_without(typed: str, count: int | None) -> None:
    assert typed_count(typed) == count


@pytest.mark.both_databases
async def test_a_permissions_texts_are_changed_per_language(
    service: Service, owner: Visitor
) -> None:
    await owner.post("/permissions", {"key": "news", "title-en": "News", "default": "1"})

    empty = await owner.post("/permissions/news", {"title-en": " "})
    changed = await owner.post("/permissions/news", {"title-en": "News", "title-ru": "Новости"})
    async with service.db.read() as tx:
        permission = await service.get(Permissions).get(tx, owner.project_id, "news")

    assert (empty.status_code, changed.status_code) == (400, 303)
    assert permission.title == {"en": "News", "ru": "Новости"}
    assert permission.default is False


async def test_a_template_is_written_tried_sent_and_deleted(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    written = {
        "key": "order",
        "text": "Hello, *{{ name }}*!",
        "text_ru": "Привет, *{{ name }}*!",
        "format": "markdown",
        "button_text_1": "Track",
        "button_url_1": "https://shop.example/{{ order }}",
    }

    wrong = await owner.post("/new-template", {**written, "text": "Hello, {{ name"})
    made = await owner.post("/new-template", written)
    tried = await owner.post("/template-preview", {**written, "of": "order", "var-name": NASTY})
    listed = (await owner.get("/templates")).text
    shown = (await owner.get("/templates/order")).text
    compose = (await owner.get("/messages/new", to=ann, template="order")).text
    sent = await owner.post(
        "/messages/new", {"to": ann, "template": "order", "var-name": "Ann", "var-order": "7"}
    )
    message = (await owner.client.get(sent.headers["location"])).text
    await owner.post("/templates/order", {**written, "text_ru": ""})
    async with service.db.read() as tx:
        content = await service.get(Templates).content_of(tx, owner.project_id, "order")
    deleted = await owner.post("/templates/order/delete")

    assert wrong.status_code == 400
    assert "Hello, {{ name</textarea>" in wrong.text
    assert "&#34;template&#34;: &#34;order&#34;" in shown
    assert made.headers["location"].endswith("/templates/order")
    check_escaped(tried.text)
    assert "order" in listed
    assert 'value="https://shop.example/{{ order }}"' in shown
    assert 'name="var-order"' in compose
    assert "https://shop.example/7" in message
    assert content.text == "Hello, *{{ name }}*!"
    assert (deleted.status_code, (await owner.get("/templates/order")).status_code) == (303, 404)


async def test_an_agent_writes_to_people_and_changes_nothing_of_them(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    agent = await visitor(service, owner.project_id, "agent")
    viewer = await visitor(service, owner.project_id, "viewer")

    page = (await agent.get(f"/subscribers/{ann}")).text
    sent = await agent.post("/messages/new", {"to": ann, "text": "Hi"})
    refused = [
        (await agent.post(f"/subscribers/{ann}/erase")).status_code,
        (await agent.get("/messages")).status_code,
        (await agent.get("/tags")).status_code,
        (await viewer.post("/messages/new", {"to": ann, "text": "Hi"})).status_code,
        (await viewer.post("/tags", {"name": "x"})).status_code,
        (await viewer.post("/template-preview", {"text": "Hi"})).status_code,
        (await viewer.post("/branding-preview", {"sender_name": "Shop"})).status_code,
    ]

    assert "Write a message" in page
    assert "Erase" not in page
    assert sent.headers["location"].endswith(f"/subscribers/{ann}")
    assert refused == [403] * 7
    assert "New tag" not in (await viewer.get("/tags")).text


async def test_the_file_for_spreadsheets_holds_what_the_filters_leave(
    service: Service, owner: Visitor
) -> None:
    await subscribed(service, owner.project_id, "Ann", tags=())
    bob = await subscribed(service, owner.project_id, "Bob")
    await owner.post(f"/subscribers/{bob}/tags/add", {"tag": "vip"})

    file = await owner.get("/subscribers/export", tag="vip")
    wrong = await owner.get("/subscribers/export", status="lost")

    assert file.headers["content-type"] == "text/csv; charset=utf-8"
    assert "Bob" in file.text
    assert "Ann" not in file.text
    assert wrong.status_code == 400


async def test_a_plan_without_files_for_spreadsheets_is_named_in_their_place(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(plugins=("billing",), **WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    await subscribed(service, project.project_id, "Ann")

    answer = await owner.get("/subscribers/export")
    listed = (await owner.get("/subscribers")).text

    assert answer.status_code == 303
    assert "CSV export needs a larger plan." in listed
    assert "Export CSV" not in listed


async def test_a_disabled_project_can_be_looked_at_and_that_is_all(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann")
    message = {"to": ann, "text": "Hello", "format": "plain"}
    before = (await owner.get(f"/subscribers/{ann}")).text
    await service.projects.set_active(owner.project_id, False)

    shown = await owner.get(f"/subscribers/{ann}")
    sent = await owner.post("/messages/new", message)
    changed = await owner.post(f"/subscribers/{ann}/edit", {"external_id": "crm-2"})
    await service.projects.set_active(owner.project_id, True)
    again = await owner.post("/messages/new", message)

    assert "is disabled" not in before
    assert (shown.status_code, "This project is disabled" in shown.text) == (200, True)
    assert (sent.status_code, changed.status_code, again.status_code) == (403, 403, 303)
    assert "is disabled" in sent.text
    assert "crm-2" not in (await owner.get(f"/subscribers/{ann}")).text
