"""The Python client against a running service: what only the real one can show, on both sides."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from msgsvc_client import (
    AsyncClient,
    AsyncFileCursorStore,
    Client,
    ConnectFailed,
    FileCursorStore,
    RetryPolicy,
    errors,
)
from msgsvc_client.events import UnknownEvent
from tests.clients.python.conftest import Running
from tests.ports import free_ports


@pytest_asyncio.fixture(loop_scope="session")
async def client(running: Running) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(running.key, running.url) as made:
        yield made


@pytest.fixture
def sync(running: Running) -> Iterator[Client]:
    with Client(running.key, running.url) as made:
        yield made


class Person:
    """Somebody who uses the sandbox's messenger."""

    def __init__(self, base_url: str, person_id: str) -> None:
        self._api = f"{base_url}/sandbox/api/people/{person_id}"

    async def open(self, link: str) -> None:
        async with httpx2.AsyncClient() as http:
            answer = await http.post(f"{self._api}/open", json={"link": link})
        answer.raise_for_status()

    async def press(self, label: str) -> None:
        """Presses the first button with this text, once the bot has sent it."""
        revision, messages = 0, list[dict[str, Any]]()
        async with httpx2.AsyncClient(timeout=40) as http:
            while not any(message["buttons"] for message in messages):
                found = await http.get(f"{self._api}/state", params={"since": revision, "wait": 25})
                state = found.raise_for_status().json()
                assert state["revision"] > revision, "the bot sent no buttons"
                revision, messages = state["revision"], state["messages"]
            asked = next(message for message in messages if message["buttons"])
            [place] = [
                {"row": row, "column": column}
                for row, buttons in enumerate(asked["buttons"])
                for column, button in enumerate(buttons)
                if button["text"] == label
            ]
            url = f"{self._api}/chats/messenger_a/messages/{asked['ref']}/press"
            (await http.post(url, json=place)).raise_for_status()


@pytest.fixture
async def ann(running: Running) -> Person:
    async with httpx2.AsyncClient() as http:
        answer = await http.post(f"{running.url}/sandbox/api/people", json={"name": "Ann"})
    return Person(running.url, answer.json()["person_id"])


async def subscribed(client: AsyncClient, person: Person, external_id: str) -> None:
    link = await client.subscribers.create_link(external_id=external_id)
    await person.open(link.links["messenger_a"])


async def test_a_message_is_sent_once_under_one_key(client: AsyncClient, ann: Person) -> None:
    await subscribed(client, ann, "once")

    first, second = [
        await client.messages.send(external_id="once", text="Hi", idempotency_key="hi-ann-once")
        for _ in range(2)
    ]

    assert first == second
    assert (await client.messages.get(first.message_id)).text == "Hi"


async def test_a_sign_in_is_waited_for(client: AsyncClient, ann: Person) -> None:
    session = await client.auth.sessions.create(state="of-the-browser")
    await ann.open(session.links["messenger_a"])
    await ann.press("Yes")

    confirmed = await client.auth.sessions.wait(session.session_id, timeout_s=20)

    assert confirmed.status == "confirmed"
    assert confirmed.code
    person = await client.auth.verify(code=confirmed.code)
    assert (person.first_name, person.state) == ("Ann", "of-the-browser")
    with pytest.raises(errors.AuthCodeUsed):
        await client.auth.verify(code=confirmed.code)


async def test_lists_files_and_exports_come_whole(client: AsyncClient, ann: Person) -> None:
    await subscribed(client, ann, "listed")
    for name in ("one", "two", "three"):
        await client.tags.create(name=name)

    tags = [tag.name async for tag in client.tags.list(limit=2)]
    uploaded = await client.files.upload(b"a,b\n1,2\n", filename="t.csv", content_type="text/csv")
    content = await client.files.download(uploaded.file_id).read()
    async with client.subscribers.export(external_id="listed") as export:
        rows = [row async for row in export.rows()]

    assert tags == ["three", "two", "one"]
    assert content == b"a,b\n1,2\n"
    assert [row["first_name"] for row in rows] == ["Ann"]


async def test_events_are_followed(client: AsyncClient, ann: Person, tmp_path: Path) -> None:
    store = AsyncFileCursorStore(tmp_path / "cursor")

    async def run() -> list[str]:
        options: Any = {"event": "event.tracked", "until_idle": True}
        return [event.raw["data"]["name"] async for event in client.events.follow(store, **options)]

    await subscribed(client, ann, "tracked")
    await client.events.track(external_id="tracked", name="before")
    runs = [await run()]
    for name in ("first", "second"):
        await client.events.track(external_id="tracked", name=name)
    runs += [await run(), await run()]

    assert runs == [[], ["first", "second"], []]


def test_the_sync_side_does_the_same(sync: Client, tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(3)]
    for name in names:
        sync.tags.create(name=name)

    found = [tag.name for tag in sync.tags.list(limit=1) if tag.name in names]
    pages = [len(page.data) for page in sync.tags.list(limit=100).pages()]
    content = sync.files.upload(b"x,y\n", filename="t.csv", content_type="text/csv")
    with sync.files.download(content.file_id) as file:
        chunks = list(file.chunks())
    with sync.subscribers.export() as export:
        rows = list(export.rows())
    store = FileCursorStore(tmp_path / "cursor")
    events = list(sync.events.follow(store, until_idle=True, from_beginning=True))
    session = sync.auth.sessions.create()
    waited = sync.auth.sessions.wait(session.session_id, timeout_s=0)

    assert found == names[::-1]
    assert sum(pages) >= 3
    assert b"".join(chunks) == b"x,y\n"
    assert all("subscriber_id" in row for row in rows)
    assert len({event.event_id for event in events}) == len(events)
    assert not any(isinstance(event, UnknownEvent) for event in events)
    assert waited.status == "pending"
    with pytest.raises(errors.NotFound, match=r"not_found: .*GET /v1/messages/msg_none.*req_"):
        sync.messages.get("msg_none")


async def test_a_wrong_key_is_refused(running: Running) -> None:
    async with AsyncClient("msk_another", running.url) as client:
        with pytest.raises(errors.InvalidApiKey):
            await client.project.get()


async def test_a_service_that_is_not_there_is_told_as_such() -> None:
    url = f"http://127.0.0.1:{free_ports()}"

    async with AsyncClient("msk_x", url, retries=RetryPolicy(base_s=0, max_attempts=2)) as client:
        with pytest.raises(ConnectFailed, match=r"GET /v1/project\) after 2 attempts"):
            await client.project.get()
    retries = RetryPolicy(base_s=0, max_attempts=2)
    with Client("msk_x", url, retries=retries) as sync, pytest.raises(ConnectFailed):
        sync.project.get()
