"""Agents answer customers on every messenger, and nobody's words break a message there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.kernel.visible_text import one_line
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_helpdesk import plugin as helpdesk
from tests.channels.conftest import knows_bot
from tests.channels.crowd import CROWDS, Crowd, write
from tests.channels.phones import Phone, Seen, seen
from tests.payloads import NAMES, PAYLOADS

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "new": "New ticket #1, Ann: Help *me* <b>&",
        "take": "Assign to me",
        "yours": "Your ticket #1, Ann",
        "taken": "Assigned to Mia.",
        "close": "Close",
        "skip": "Skip",
        "rated": "Rated 4 of 5.",
    },
    "ru": {
        "new": "Новое обращение №1, Ann: Help *me* <b>&",
        "take": "Назначить мне",
        "yours": "Ваше обращение №1, Ann",
        "taken": "Отвечает Mia.",
        "close": "Закрыть",
        "skip": "Пропустить",
        "rated": "Оценка: 4 из 5.",
    },
}

#: Which of the texts are sent in a language, every second one: all together on each messenger, and no more at
#: once than fit into the part of a chat that the sandbox shows.
PARTS = {"en": slice(0, None, 2), "ru": slice(1, None, 2)}

#: What a language says does not depend on the database, so each has one of its own.
pytestmark = [
    pytest.mark.parametrize("kind", CROWDS),
    pytest.mark.parametrize(
        ("backend", "lang"), [("sqlite", "en"), ("postgresql", "ru")], indirect=["backend"]
    ),
]


@dataclass
class Desk:
    """A project with its helpdesk on a messenger."""

    crowd: Crowd
    service: Service
    client: httpx2.AsyncClient
    lang: str

    @property
    def words(self) -> dict[str, str]:
        return WORDS[self.lang]

    async def post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.client.post(path, json=body)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def person(self, name: str, path: str = "/v1/subscribers/links") -> Phone:
        """Somebody new who has opened a link."""
        phone = await self.crowd.person(self.service, name, self.lang)
        made = await self.post(path)
        await phone.open(made["links"]["messenger_a"])
        return phone

    async def agent(self, name: str) -> Phone:
        email = f"{name.lower()}@shop.example"
        member = await self.post("/v1/members", name=name, email=email)
        phone = await self.person(name, f"/v1/members/{member['member_id']}/link")
        await seen(phone, f"{name}, ")
        return phone

    async def customer(self, name: str = "Ann") -> Phone:
        phone = await self.person(name)
        await seen(phone, "Shop")
        return phone

    async def answer(self, phone: Phone, above: Seen, text: str) -> None:
        """As an answer to a message where the messenger tells that, else by what is open."""
        channel = self.service.channels["messenger_a"]
        # People take longer to answer than a job takes to note what the message is called there.
        await settled(self.service)
        await write(phone, text, above if channel.capabilities.tells_replies else None)

    async def tickets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get("/v1/tickets")).json()["data"]
        return found

    async def told(self) -> list[str]:
        """The names of the events of tickets so far, oldest first."""
        feed = (await self.client.get("/v1/events?limit=100")).json()["data"]
        names = [event["event"] for event in reversed(feed)]
        return [name for name in names if name.startswith("ticket.")]


@pytest.fixture
async def crowd(kind: str) -> AsyncIterator[Crowd]:
    async with CROWDS[kind]() as crowd:
        yield crowd


@pytest.fixture
async def service(make_service: ServiceFactory, crowd: Crowd) -> Service:
    service = await make_service(
        extra_plugins=[(crowd.name, crowd.plugin), ("helpdesk", helpdesk)],
        channels={"messenger_a": {"plugin": crowd.name, **crowd.settings}},
        limits={"requests_per_minute": 1_000_000},
        use_clock=SystemClock(),
    )
    if crowd.settings:
        # The sandbox has no platform that would have to be asked for the bot's name.
        await knows_bot(service, "messenger_a")
    return service


@pytest.fixture
def desk(service: Service, tenant: Tenant, crowd: Crowd, lang: str) -> Desk:
    return Desk(crowd, service, tenant.client, lang)


async def test_a_ticket_lives_from_the_first_word_to_the_rating(desk: Desk) -> None:
    words = desk.words
    mia, ann = await desk.agent("Mia"), await desk.customer()

    await write(ann, "Help *me* <b>&")
    await seen(mia, words["new"])
    await mia.press(words["take"])
    await desk.answer(mia, await seen(mia, words["yours"]), "On it. <i>_really_")
    answer = await seen(ann, "On it. <i>_really_")
    await write(ann, "Thank you!")
    await seen(mia, "Thank you!")
    await mia.press(words["close"])
    await seen(ann, "#1" if desk.lang == "en" else "№1")
    await ann.press("4")
    await write(ann, "Friendly")
    rated = await seen(mia, words["rated"])

    assert not answer.marked_up
    assert rated.text.endswith("Friendly")
    assert await desk.told() == [
        "ticket.created",
        "ticket.assigned",
        "ticket.replied",
        "ticket.status_changed",
        "ticket.status_changed",
        "ticket.replied",
        "ticket.status_changed",
        "ticket.closed",
        "ticket.csat_received",
    ]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_take_a_ticket_at_once_and_one_has_it(desk: Desk) -> None:
    words = desk.words
    agents = {name: await desk.agent(name) for name in ("Mia", "Lee")}
    ann = await desk.customer()
    await write(ann, "Help *me* <b>&")
    for phone in agents.values():
        await seen(phone, words["new"])

    notices = await asyncio.gather(*(phone.press(words["take"]) for phone in agents.values()))

    [ticket] = await desk.tickets()
    members = (await desk.client.get("/v1/members")).json()["data"]
    [winner] = [one["name"] for one in members if one["member_id"] == ticket["assignee_id"]]
    [loser] = set(agents) - {winner}
    await seen(agents[winner], words["yours"])
    state = words["taken"].replace("Mia", winner)
    told = dict(zip(agents, notices, strict=True))
    assert winner in told[loser]
    assert winner not in told[winner]
    assert state in (await seen(agents[loser], state)).text
    assert await desk.told() == ["ticket.created", "ticket.assigned"]


async def test_texts_reach_the_agent_as_they_are(desk: Desk) -> None:
    mia = await desk.agent("Mia")
    payloads = PAYLOADS[PARTS[desk.lang]]
    # A long one is nobody's name.
    names = [text if text in NAMES else f"Ann {number}" for number, text in enumerate(payloads)]
    await asyncio.gather(*(desk.customer(name) for name in names))
    people = (await desk.client.get("/v1/subscribers?limit=100")).json()["data"]
    ids = {one["first_name"]: one["subscriber_id"] for one in people}

    async def ask(name: str, text: str) -> tuple[int, str]:
        """The ticket's number, and what its file is called."""
        file = await desk.client.post("/v1/files", files={"file": (name, b"Hi", "text/plain")})
        assert file.is_success, file.text
        body = {"subscriber_id": ids[name], "text": text, "file_ids": [file.json()["file_id"]]}
        return (await desk.post("/v1/tickets", **body))["number"], file.json()["filename"]

    asked = await asyncio.gather(*map(ask, names, payloads))

    sign = "#" if desk.lang == "en" else "№"
    for (number, filename), name, payload in zip(asked, names, payloads, strict=True):
        shown = await seen(mia, f"{sign}{number},")
        assert payload.replace("\r\n", "\n").strip() in shown.text.replace("\r\n", "\n")
        assert one_line(name)[:50] in shown.text
        assert one_line(filename) in shown.text
        # An address in a plain text is made a link by the messenger itself.
        assert not shown.marked_up or "https://" in payload


async def test_answers_reach_the_customer_as_they_are(desk: Desk) -> None:
    payloads = NAMES[PARTS[desk.lang]]
    mia, ann = await desk.agent("Mia"), await desk.customer()
    await write(ann, "Help *me* <b>&")
    await seen(mia, desk.words["new"])
    await mia.press(desk.words["take"])
    card = await seen(mia, desk.words["yours"])
    for payload in payloads:
        await desk.answer(mia, card, payload)

    async def missing() -> list[str]:
        texts = {message.text for message in await ann.messages()}
        return [text for text in payloads if not {text, text.strip()} & texts]

    async def answered() -> bool:
        return not await missing()

    with suppress(
        TimeoutError
    ):  # the assertion names what did not come, and what the agent was told
        await until(answered, interval_s=0.05)
    assert await missing() == [], [message.text for message in await mia.messages()]
    shown = {message.text: message for message in await ann.messages()}
    assert not any(message.marked_up for message in shown.values())
