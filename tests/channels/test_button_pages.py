"""A platform whose buttons only open URLs, such as email: people press on a page of the service."""

import re
from itertools import count
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin as auth
from msgsvc_core.channels import Button, Capabilities, ChannelUser, MessageReceived, OutgoingMessage
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

CALLBACK = "https://shop.example/back"
QUESTION = {
    "text": "Coming, **Ann**?",
    "format": "markdown",
    "buttons": [
        [{"text": "Yes", "data": "y"}, {"text": "No, sorry", "data": "n"}],
        [{"text": "Map", "url": "https://shop.example/map"}],
    ],
}

_ids = count(1)


class Reader:
    """Somebody who reads what the bot sends, and opens its links."""

    def __init__(self, service: Service, client: httpx2.AsyncClient, number: int = 77) -> None:
        self._service = service
        self._client = client
        self._number = number

    async def write(self, text: str) -> OutgoingMessage:
        """Returns what the bot said last."""
        user = ChannelUser(f"{self._number}", "Ann", None, "en")
        update = MessageReceived(
            update_id=f"w{next(_ids)}", chat_id=f"room-{self._number}", user=user, text=text
        )
        await self._service.inbound.receive("messenger_a", update)
        await settled(self._service)
        return self.said[-1]

    @property
    def said(self) -> list[OutgoingMessage]:
        channel = self._service.channels["messenger_a"]
        assert isinstance(channel, RecordingChannel)
        room = f"room-{self._number}"
        return [sent.message for sent in channel.sent if sent.chat_id == room]

    async def open(self, button: Button) -> httpx2.Response:
        return await self._client.get(_path(button))

    async def press(self, button: Button, page: httpx2.Response | None = None) -> httpx2.Response:
        """Opens the page and presses its button; or once more on a page that is open."""
        page = page or await self.open(button)
        attempt = re.search(r'name="attempt" value="([0-9a-f]+)"', page.text)
        data = {"attempt": attempt[1] if attempt else ""}
        answer = await self._client.post(_path(button), data=data)
        await settled(self._service)
        return answer


def _path(button: Button) -> str:
    assert button.url is not None
    path = re.fullmatch(r"https?://[^/]+(/b/[0-9a-f]{32}/\d)", button.url)
    assert path is not None, button.url
    return path[1]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    service = await make_service(extra_plugins=[("auth", auth)])
    service.channels["messenger_a"].capabilities = Capabilities(
        buttons="pages", edit=False, start_links=False
    )
    return service


@pytest.fixture
def ann(service: Service, client: httpx2.AsyncClient) -> Reader:
    return Reader(service, client)


async def post(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def session(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    return await post(client, "/v1/auth/session", {"channel": "messenger_a", **body})


async def status(client: httpx2.AsyncClient, begun: dict[str, Any]) -> str:
    answer = await client.get(f"/v1/auth/session/{begun['session_id']}/status")
    found: str = answer.json()["status"]
    return found


async def subscribe(client: httpx2.AsyncClient, reader: Reader) -> str:
    link = await post(client, "/v1/subscribers/links", {})
    await reader.write(link["start_messages"]["messenger_a"])
    found = (await client.get("/v1/subscribers")).json()["data"]
    subscriber_id: str = found[0]["subscriber_id"]
    return subscriber_id


async def ask(client: httpx2.AsyncClient, service: Service, to: str) -> str:
    """Sends the project's question; returns the message's id."""
    sent = await post(client, "/v1/send", {"subscriber_id": to, **QUESTION})
    await settled(service)
    message_id: str = sent["message_id"]
    return message_id


async def clicks(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    events = (await client.get("/v1/events")).json()["data"]
    return [event["data"] for event in events if event["event"] == "button.clicked"]


async def test_a_person_signs_in_on_a_page(client: httpx2.AsyncClient, ann: Reader) -> None:
    link = {"slug": "shop", "name": "Shop", "callback_url": CALLBACK}
    await post(client, "/v1/auth/links", link)
    question = await ann.write("start auth_shop")
    yes, cancel = (button for row in question.buttons for button in row)

    page = await ann.open(yes)
    said = await ann.press(yes, page)

    assert (yes.text, cancel.text) == ("Yes", "Cancel")
    assert "Sign in to Shop?" in page.text
    assert ">Yes</button>" in page.text
    assert "You are signed in to Shop." in said.text
    assert f'href="{CALLBACK}?code=' in said.text
    assert ann.said[-1] is question, "the page has said it"


async def test_opening_a_page_presses_nothing(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    begun = await session(client)
    question = await ann.write(begun["start_messages"]["messenger_a"])
    yes = question.buttons[0][0]

    for method in ("GET", "HEAD"):
        answer = await client.request(method, _path(yes))
        assert answer.status_code == 200
    await settled(service)

    assert await status(client, begun) == "pending"


async def test_a_projects_button_is_clicked_on_its_page(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    message_id = await ask(client, service, await subscribe(client, ann))
    (yes, no), (map_,) = ann.said[-1].buttons

    page = await ann.open(no)
    said = await ann.press(no, page)

    assert map_.url == "https://shop.example/map"
    assert "Coming, Ann?" in page.text
    assert said.status_code == 200
    clicked = await clicks(client)
    assert [(each["message_id"], each["data"]) for each in clicked] == [(message_id, "n")]
    assert (await ann.press(yes)).status_code == 200
    assert [each["data"] for each in await clicks(client)] == ["y", "n"]


async def test_a_form_that_is_sent_twice_is_one_press(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    await ask(client, service, await subscribe(client, ann))
    yes = ann.said[-1].buttons[0][0]
    page = await ann.open(yes)

    first, again = await ann.press(yes, page), await ann.press(yes, page)

    assert (first.status_code, again.status_code) == (200, 200)
    assert len(await clicks(client)) == 1


async def test_a_page_is_there_for_as_long_as_the_setting_says(
    client: httpx2.AsyncClient, service: Service, ann: Reader, clock: FakeClock
) -> None:
    await ask(client, service, await subscribe(client, ann))
    yes = ann.said[-1].buttons[0][0]

    clock.advance(29 * 24 * 3600)
    before = await ann.open(yes)
    clock.advance(2 * 24 * 3600)
    after = await ann.press(yes)

    assert (before.status_code, after.status_code) == (200, 404)
    assert "This button no longer exists" in after.text
    assert await clicks(client) == []


@pytest.mark.parametrize(
    "path", ["/b/0123456789abcdef0123456789abcdef/1", "/b/x/1", "/b/x/y", "/b/x/9999"]
)
async def test_an_unknown_page_is_told_as_such(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == 404
    assert "no-store" in answer.headers["cache-control"]


async def test_a_number_that_a_message_does_not_have_is_unknown(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    await ask(client, service, await subscribe(client, ann))
    yes = ann.said[-1].buttons[0][0]

    answer = await client.get(_path(yes)[:-1] + "3")

    assert answer.status_code == 404


@pytest.mark.both_databases
async def test_an_erased_persons_pages_are_gone(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    to = await subscribe(client, ann)
    await ask(client, service, to)
    yes = ann.said[-1].buttons[0][0]

    erased = await client.delete(f"/v1/subscribers/{to}", params={"erase": "true"})
    await settled(service)
    answer = await ann.open(yes)

    assert erased.is_success
    assert answer.status_code == 404
    async with service.db.read() as tx:
        assert await tx.fetch_all("SELECT * FROM core_button_pages") == []


async def test_what_is_stored_tells_neither_the_address_nor_the_question(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant, ann: Reader
) -> None:
    begun = await session(client)
    question = await ann.write(begun["start_messages"]["messenger_a"])
    token = _path(question.buttons[0][0]).split("/")[2]

    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM core_button_pages")
    kept = " ".join(str(value) for row in rows for value in row)

    assert len(rows) == 1
    assert token not in kept
    assert "Shop" not in kept


async def test_a_page_speaks_the_persons_language_and_wears_the_projects_brand(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    await ask(client, service, await subscribe(client, ann))
    await ann.write("/lang ru")
    await ask(
        client, service, (await client.get("/v1/subscribers")).json()["data"][0]["subscriber_id"]
    )
    yes = ann.said[-1].buttons[0][0]

    page = await ann.open(yes)

    assert '<html lang="ru">' in page.text
    assert '<header class="sender">' in page.text
    styles = re.findall(r'<link rel="stylesheet" href="([^"]+)"', page.text)
    assert [(await client.get(style)).status_code for style in styles] == [200] * len(styles)
    assert len(styles) >= 3


async def test_markup_in_a_message_is_no_markup_of_the_page(
    client: httpx2.AsyncClient, service: Service, ann: Reader
) -> None:
    to = await subscribe(client, ann)
    label = "<b onclick=alert(1)>"
    body = {
        "subscriber_id": to,
        "text": "<script>alert(1)</script>",
        "buttons": [[{"text": label, "data": "x"}]],
    }
    await post(client, "/v1/send", body)
    await settled(service)

    page = await ann.open(ann.said[-1].buttons[0][0])

    assert "<script>alert" not in page.text
    assert "<b onclick" not in page.text
