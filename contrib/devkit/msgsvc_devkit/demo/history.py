"""The demo's past: a small library's life, played by the service itself before the demo begins.

Everything happens through the API and the messengers: nothing is written to the database here. The clock of
the service stands some days back and runs through them; its ids are of that time too.
"""

import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from msgsvc_core.config.settings import load_settings
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import stamped_by
from msgsvc_core.service import Service
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.demo import history_texts as texts
from msgsvc_devkit.demo.stage import StepFailed
from msgsvc_devkit.ephemeral.time_travel import TimeTravel
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson

HOUR_S = 3600
DAY_S = 24 * HOUR_S

#: Makes every demo the same.
SEED = 8

CHANNELS = ("messenger_a", "messenger_b")


@dataclass(slots=True)
class Reader:
    """Somebody who reads at this library."""

    person: SandboxPerson
    name: str
    subscriber_id: str
    channel: str
    lang: str
    is_gone: bool = False


@dataclass(slots=True)
class Library:
    """The project and the people of its past."""

    api: httpx2.AsyncClient
    sandbox: Sandbox
    time: TimeTravel
    clock: Clock
    chance: random.Random
    agent_id: str = ""
    form_id: str = ""
    readers: list[Reader] = field(default_factory=list)
    #: Tickets with the time at which they are answered, in Unix milliseconds.
    unanswered: list[tuple[int, str]] = field(default_factory=list)

    @property
    def active(self) -> list[Reader]:
        return [reader for reader in self.readers if not reader.is_gone]

    async def post(self, path: str, body: Any = None, **fields: Any) -> Any:
        """The JSON of an answer. Raises `StepFailed` for a refusal."""
        answer = await self.api.post(path, json=body if body is not None else fields)
        if not answer.is_success:
            raise StepFailed(f"POST {path} answered {answer.status_code}: {answer.text}")
        return answer.json() if answer.content else None

    async def patch(self, path: str, **changes: Any) -> Any:
        answer = await self.api.patch(path, json=changes)
        if not answer.is_success:
            raise StepFailed(f"PATCH {path} answered {answer.status_code}: {answer.text}")
        return answer.json()

    async def get(self, path: str) -> Any:
        answer = await self.api.get(path)
        if not answer.is_success:
            raise StepFailed(f"GET {path} answered {answer.status_code}: {answer.text}")
        return answer.json()

    def some(self, most: int) -> list[Reader]:
        """Up to so many active readers, each once."""
        active = self.active
        return self.chance.sample(active, min(len(active), self.chance.randint(0, most)))


async def play_history(
    config: Path, api_key: str, days: int, on_day: Callable[[int], None]
) -> None:
    """Plays so many days up to a minute ago; `on_day` is called with the number of those that are over."""
    clock = MovableClock(-days * DAY_S)
    with stamped_by(lambda: clock.now_ms() * 1_000_000):
        async with _library(config, api_key, clock) as library:
            await _open(library)
            for day in range(days):
                await _day(library, day)
                # The last one ends a minute before now.
                left_s = min((day + 1 - days) * DAY_S, -60.0) - clock.ahead_s
                await library.time.advance(max(0.0, left_s), steps=1)
                if day == days - 1:
                    await _ask_last(library)
                on_day(day + 1)


@asynccontextmanager
async def _library(config: Path, api_key: str, clock: MovableClock) -> AsyncIterator[Library]:
    settings = load_settings(config)
    # The log would stand between the lines of the demo.
    quiet = settings.model_copy(
        update={"log": settings.log.model_copy(update={"level": "error", "requests": "none"})}
    )
    service = Service(quiet, clock=clock)
    async with (
        service,
        Sandbox.in_process(service) as sandbox,
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=service.app),
            base_url=service.settings.base_url,
            headers={"Authorization": f"Bearer {api_key}"},
        ) as api,
    ):
        time = TimeTravel(clock=clock, db=service.db, jobs=service.jobs)
        yield Library(api, sandbox, time, clock, random.Random(SEED))  # noqa: S311 - no secret


async def _open(library: Library) -> None:
    """What the library sets up before its first reader."""
    await library.post("/v1/drips", texts.WELCOME)
    await library.post("/v1/templates", texts.REMINDER)
    await library.post("/v1/tickets/canned-answers", texts.CANNED)
    agent = {"name": texts.AGENT, "email": "desk@library.example", "role": "agent"}
    library.agent_id = (await library.post("/v1/members", agent))["member_id"]
    library.form_id = (await library.post("/v1/forms", texts.FORM))["form_id"]


async def _day(library: Library, day: int) -> None:
    """Its first ten hours."""
    for _ in range(library.chance.choice((0, 1, 1, 1, 2))):
        if len(library.readers) < len(texts.READERS):
            await _subscribe(library)
    await library.time.advance(3 * HOUR_S, steps=1)
    await _remind(library)
    await library.time.advance(2 * HOUR_S, steps=1)
    for reader in library.some(4):
        await _sign_in(library, reader)
    for reader in library.some(2):
        await _enter_code(library, reader)
    await library.time.advance(2 * HOUR_S, steps=1)
    for reader in library.some(1 + day % 2):
        await _ask(library, reader)
    for reader in library.some(1):
        await _fill_in(library, reader)
    if day % 7 == 4:
        await _announce(library, day // 7)
    await library.time.advance(3 * HOUR_S, steps=1)
    await _answer(library)
    if day % 9 == 8 and library.active:
        await _leave(library, library.chance.choice(library.active))


async def _subscribe(library: Library) -> None:
    name, lang = texts.READERS[len(library.readers)]
    channel = library.chance.choice(CHANNELS)
    person = await library.sandbox.person(name, lang=lang)
    tag = library.chance.choice(texts.TAGS)
    external_id = f"card-{1001 + len(library.readers)}"
    links = await library.post("/v1/subscribers/links", tags=[tag], external_id=external_id)
    await person.open(links["links"][channel])
    await library.time.settle()
    [found] = (await library.get(f"/v1/subscribers?external_id={external_id}"))["data"]
    library.readers.append(Reader(person, name, found["subscriber_id"], channel, lang))


async def _remind(library: Library) -> None:
    """Books that are due."""
    messages = [
        {
            "subscriber_id": reader.subscriber_id,
            "template": texts.REMINDER["key"],
            "variables": {"book": library.chance.choice(texts.BOOKS)},
        }
        for reader in library.some(12)
    ]
    if not messages:
        return
    if library.chance.randrange(8) == 0:
        # Somebody has closed the chat: the messenger refuses one message.
        await library.sandbox.fail(library.chance.choice(CHANNELS), "chat_not_found", times=1)
    await library.post("/v1/send/batch", messages=messages)
    await library.time.settle()
    for channel in CHANNELS:
        await library.sandbox.heal(channel)
    blocked = (await library.get("/v1/subscribers?status=blocked&limit=100"))["data"]
    gone = {each["subscriber_id"] for each in blocked}
    for reader in library.readers:
        reader.is_gone = reader.subscriber_id in gone


async def _sign_in(library: Library, reader: Reader) -> None:
    """One of eight does not confirm it."""
    session = await library.post("/v1/auth/session", state="month")
    await reader.person.open(session["links"][reader.channel])
    if library.chance.randrange(8):
        await library.time.advance(library.chance.randint(3, 20), steps=1)
        await reader.person.press(texts.YES[reader.lang], channel=reader.channel)
    await library.time.settle()


async def _enter_code(library: Library, reader: Reader) -> None:
    """One of six does not enter it."""
    await library.post("/v1/otp/send", subscriber_id=reader.subscriber_id, purpose="card")
    await library.time.settle()
    if library.chance.randrange(6):
        newest = (await reader.person.messages(reader.channel))[-1]
        [code] = re.findall(r"\b\d{4,8}\b", newest.text)
        body = {"subscriber_id": reader.subscriber_id, "purpose": "card", "code": code}
        await library.post("/v1/otp/verify", body)


async def _ask(library: Library, reader: Reader) -> None:
    """Opens a ticket, or writes in the one that is open; most are answered within hours."""
    question = library.chance.choice(texts.QUESTIONS[reader.lang])
    await reader.person.say(question, channel=reader.channel)
    await library.time.settle()
    tickets = (await library.get("/v1/tickets?limit=100"))["data"]
    found = [
        each["ticket_id"]
        for each in tickets
        if each["subscriber_id"] == reader.subscriber_id and each["status"] != "closed"
    ]
    waits_ms = library.chance.choice((1, 2, 3, 27)) * HOUR_S * 1000
    # After a rating the next text is its comment, and opens no ticket.
    library.unanswered += [(library.clock.now_ms() + waits_ms, ticket_id) for ticket_id in found]


async def _ask_last(library: Library) -> None:
    """What waits for an answer when the demo begins."""
    for reader in library.chance.sample(library.active, min(3, len(library.active))):
        await _ask(library, reader)


async def _answer(library: Library) -> None:
    """The agent answers what was asked long enough ago; of the last days some stay open."""
    due = [each for each in library.unanswered if each[0] <= library.clock.now_ms()]
    for each in due:
        library.unanswered.remove(each)
        path = f"/v1/tickets/{each[1]}"
        ticket = await library.get(path)
        is_gone = all(each.subscriber_id != ticket["subscriber_id"] for each in library.active)
        if is_gone or ticket["status"] == "closed":
            continue
        await library.patch(path, assignee_id=library.agent_id)
        reply = {"text": library.chance.choice(texts.REPLIES), "member_id": library.agent_id}
        await library.post(f"{path}/reply", reply)
        await library.time.settle()
        if library.chance.randrange(4):
            await library.patch(path, status="closed")
            await library.time.settle()


async def _fill_in(library: Library, reader: Reader) -> None:
    answers = {"genre": library.chance.choice(texts.GENRES), "name": reader.name}
    await library.post(f"/f/{library.form_id}", answers)


async def _announce(library: Library, week: int) -> None:
    message = texts.ANNOUNCEMENTS[week % len(texts.ANNOUNCEMENTS)]
    await library.post("/v1/broadcast", {"audience": {"all": True}, "text": message})
    await library.time.settle()


async def _leave(library: Library, reader: Reader) -> None:
    """Some readers block the bot: the next message to them fails."""
    reader.is_gone = True
    await reader.person.block(reader.channel)
    await library.time.settle()
