"""The preferences page: who may open it, what it changes, and how messages lead to it."""

import re
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Subscribe
from tests.payloads import NAMES

NEWS = {"key": "news", "title": {"en": "News", "ru": "Новости"}, "description": "Once a month"}


@pytest.fixture
async def ann(subscribe: Subscribe, client: httpx2.AsyncClient) -> str:
    await client.post("/v1/permissions", json=NEWS)
    await client.post("/v1/permissions", json={"key": "sales", "title": "Sales", "default": True})
    return await subscribe("Ann")


@pytest.fixture
def page(service: Service, tenant: Tenant, ann: str) -> str:
    """The path of Ann's page."""
    url = service.subscribers.preferences.url(tenant.project.project_id, ann)
    return re.sub(r"https?://[^/]+", "", url)


async def of(client: httpx2.AsyncClient, subscriber_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await client.get(f"/v1/subscribers/{subscriber_id}")).json()
    return found


async def test_the_page_shows_what_a_person_gets(client: httpx2.AsyncClient, page: str) -> None:
    shown = await client.get(page, headers={"accept-language": "en"})

    assert shown.status_code == 200
    assert re.search(r'value="sales" checked', shown.text)
    assert re.search(r'value="news">', shown.text)
    assert "Once a month" in shown.text
    # The link may be passed on: it says nothing of whose it is.
    assert "Ann" not in shown.text
    assert shown.headers["referrer-policy"] == "no-referrer"


async def test_a_person_changes_what_they_get(
    client: httpx2.AsyncClient, ann: str, page: str
) -> None:
    choice = {"shown": ["news", "sales"], "granted": ["news"], "lang": "ru", "do": "save"}
    saved = await client.post(page, data=choice)
    changed = await of(client, ann)

    assert saved.status_code == 303
    assert (changed["permissions"], changed["lang"]) == (["news"], "ru")
    assert "Сохранено" in (await client.get(saved.headers["location"] + "&lang=ru")).text
    events = (await client.get("/v1/events?event=subscription.permission_changed")).json()["data"]
    assert {(one["data"]["permission"], one["data"]["granted"]) for one in events[:2]} == {
        ("news", True),
        ("sales", False),
    }


async def test_what_was_not_shown_stays(client: httpx2.AsyncClient, ann: str, page: str) -> None:
    await client.post(page, data={"shown": ["news"], "granted": ["news", "none"], "lang": "xx"})
    changed = await of(client, ann)

    assert sorted(changed["permissions"]) == ["news", "sales"]
    assert changed["lang"] == "en"


async def test_a_person_stops_everything_and_comes_back(
    client: httpx2.AsyncClient, ann: str, page: str
) -> None:
    await client.post(page, data={"do": "stop"})

    assert (await of(client, ann))["status"] == "unsubscribed"
    assert 'data-status="unsubscribed"' in (await client.get(page)).text
    await client.post(page, data={"do": "start"})
    assert (await of(client, ann))["status"] == "active"


async def test_looking_ahead_changes_nothing(
    client: httpx2.AsyncClient, ann: str, page: str
) -> None:
    before = await of(client, ann)
    await client.get(f"{page}?do=stop")
    await client.head(page)

    assert await of(client, ann) == before


async def test_a_changed_link_opens_nothing(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, page: str
) -> None:
    bob = await subscribe("Bob")
    ann = page.split(".")[1]
    for wrong in (page.replace(ann, bob), page[:-1], page + "x", "/preferences/x", page.upper()):
        for answer in (await client.get(wrong), await client.post(wrong, data={"do": "stop"})):
            assert answer.status_code == 404
    assert (await of(client, bob))["status"] == "active"


async def test_an_old_link_says_how_to_get_a_new_one(
    client: httpx2.AsyncClient, clock: FakeClock, page: str
) -> None:
    clock.advance(92 * 24 * 3600)
    old = await client.get(page)

    assert old.status_code == 404
    assert "/settings" in old.text


async def test_an_erased_person_has_no_page(
    client: httpx2.AsyncClient, ann: str, page: str
) -> None:
    await client.delete(f"/v1/subscribers/{ann}?erase=true")

    assert (await client.get(page)).status_code == 404


async def test_titles_that_try_to_be_markup_are_shown_as_text(
    client: httpx2.AsyncClient, page: str
) -> None:
    for name in NAMES:
        body = {"title": name, "description": name}
        answer = await client.patch("/v1/permissions/news", json=body)
        if answer.is_success:
            shown = (await client.get(page)).text
            assert "<script" not in shown
            assert (
                set(re.findall(r"<(img|svg on|iframe|style|body on|animate|details)", shown))
                == set()
            )


async def test_a_template_leads_there_by_text_and_button(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    button = {"text": "Settings", "url": "{{ preferences_url }}"}
    template = {"key": "t", "text": "Hi. {{ preferences_url }}", "buttons": [[button]]}
    created = await client.post("/v1/templates", json=template)
    assert created.status_code == 201, created.text
    # What the service makes can't be replaced by a caller.
    body = {
        "subscriber_id": ann,
        "template": "t",
        "variables": {"preferences_url": "https://evil.example"},
    }
    assert (await client.post("/v1/send", json=body)).status_code == 202
    await settled(service)
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    sent = channel.sent[-1].message

    link = sent.text.removeprefix("Hi. ")
    assert sent.buttons[0][0].url == link
    assert (await client.get(link)).status_code == 200
    preview = await client.post("/v1/templates/t/preview", json={"variables": {}})
    assert preview.status_code == 200
