"""A storm on the fake platforms of the real channel plugins, judged by the platforms' own logs."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import pytest

import msgsvc_max.plugin
import msgsvc_telegram.plugin
from msgsvc_core.channels import ChannelUser, DeliveryError, Reason
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.max import FakeMax
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.work import PATIENCE_S
from tests.faults.conftest import Figure, Rounds
from tests.faults.recorder import Call, most_in, queue
from tests.faults.test_storm import AFTERMATH_S, RETRY_AFTER_S, early_calls, ends, overtaken

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"), [("sqlite", "embedded"), ("postgresql", "redis")], indirect=True
    ),
]

#: What both platforms let a bot do in a second.
PER_BOT_S = 30

TOO_MANY, BROKEN = 0.5, 0.2

#: Calls that a storm refuses at least.
LEAST_REFUSED = 6

#: Seconds that a call and an answer take through the loopback at most, while the loop is not held up; and
#: the turns of the loop in which both are sent and read.
ON_THEIR_WAY_S = 0.05
TURNS = 4

#: Seconds between two looks at whether the loop is held up.
LOOK_S = 0.005


class Person(Protocol):
    """Somebody on a fake platform who has started the bot."""

    async def start(self) -> Any: ...

    @property
    def messages(self) -> Sequence[Any]: ...


class Stage(Protocol):
    """A fake platform with its limits."""

    plugin: ModuleType
    settings: dict[str, Any]
    per_chat_s: int

    def person(self, name: str) -> tuple[Person, str]:
        """Somebody, and the id of their chat."""
        ...

    def storm(self, *, on: bool) -> None: ...

    async def is_asked(self) -> bool:
        """Whether the bot has asked for updates."""
        ...

    def log(self) -> list[Call]:
        """The messages that the bot was asked to send, in order."""
        ...


def _refusal(status: int | None) -> DeliveryError | None:
    if status == 429:
        return DeliveryError(Reason.RATE_LIMITED, "429", RETRY_AFTER_S)
    if status is None or status >= 400:
        return DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(status))
    return None


class TelegramStage:
    plugin = msgsvc_telegram.plugin
    per_chat_s = 1

    def __init__(self, fake: FakeTelegram) -> None:
        self._fake = fake
        self.settings = {"plugin": "telegram", "token": fake.bot.token, "base_url": fake.url}

    def person(self, name: str) -> tuple[Person, str]:
        made = self._fake.person(name)
        return made, str(made.user_id)

    def storm(self, *, on: bool) -> None:
        self._fake.faults.retry_after = round(RETRY_AFTER_S)
        self._fake.faults.too_many = TOO_MANY if on else 0.0
        self._fake.faults.server_errors = BROKEN if on else 0.0

    async def is_asked(self) -> bool:
        return bool(self._fake.calls_of("getUpdates"))

    def log(self) -> list[Call]:
        return [
            Call(
                str(call.chat_id),
                call.params["text"],
                call.at,
                call.ended_at,
                _refusal(call.status),
            )
            for call in self._fake.calls_of("sendMessage")
        ]


class MaxStage:
    plugin = msgsvc_max.plugin
    per_chat_s = 2

    def __init__(self, fake: FakeMax) -> None:
        self._fake = fake
        self.settings = {**fake.settings, "plugin": "max"}

    def person(self, name: str) -> tuple[Person, str]:
        made = self._fake.person(name)
        return made, str(made.chat_id)

    def storm(self, *, on: bool) -> None:
        self._fake.faults.retry_after_s = RETRY_AFTER_S
        self._fake.faults.rate_429 = TOO_MANY if on else 0.0
        self._fake.faults.rate_5xx = BROKEN if on else 0.0

    async def is_asked(self) -> bool:
        return bool(self._fake.calls_of("GET /updates"))

    def log(self) -> list[Call]:
        # The fake answers at once, and keeps no other time; it does not read what it refuses.
        return [
            Call(
                call.query["chat_id"],
                (call.body or {}).get("text", ""),
                call.at,
                call.at,
                _refusal(call.status or None),
            )
            for call in self._fake.calls_of("POST /messages")
        ]


@asynccontextmanager
async def stage_of(kind: str) -> AsyncIterator[Stage]:
    if kind == "telegram":
        async with FakeTelegram() as telegram:
            yield TelegramStage(telegram)
    else:
        async with FakeMax() as platform:
            yield MaxStage(platform)


@pytest.mark.parametrize("kind", ["telegram", "max"])
async def test_a_storm_of_a_platform_breaches_nothing_and_loses_nothing(
    make_service: ServiceFactory, kind: str, rounds: Rounds, figure: Figure
) -> None:
    seconds, count = rounds(short=6, long=60), rounds(short=60, long=900)
    async with stage_of(kind) as stage:
        crowd = [stage.person(f"Person {number}") for number in range(count // 3)]
        service = await make_service(
            extra_plugins=[(kind, stage.plugin)],
            use_clock=SystemClock(),
            channels={"messenger_a": stage.settings},
        )
        await until(stage.is_asked)
        # MAX gives a bot that has never asked no more than the latest update.
        opener, _ = stage.person("Opener")
        await opener.start()
        await until(lambda: greeted(service, stage, 1))
        for person, _ in crowd:
            await person.start()
        project = await service.projects.create("Shop")
        people = await subscribed(service, project.project_id, [chat for _, chat in crowd])
        await until(lambda: greeted(service, stage, 1 + len(crowd)))
        before, began_s = len(stage.log()), time.monotonic()

        async with watching_the_loop() as held_up:
            stage.storm(on=True)
            await queue(service, project.project_id, people, count)
            await until(lambda: passed(began_s + seconds), timeout_s=seconds + PATIENCE_S)
            # On a busy machine few calls are made in that time.
            await until(lambda: has_refused(stage, before, LEAST_REFUSED))
            stage.storm(on=False)
            await until(lambda: over(service), timeout_s=AFTERMATH_S, interval_s=0.1)

        found, log = await ends(service), stage.log()
        shown = Counter(
            f"{number}: {message.text}"
            for number, (person, _) in enumerate(crowd)
            for message in person.messages
            if message.text.isdigit()
        )
    storm = log[before:]
    refused = sum(
        call.refusal is not None and call.refusal.reason == "rate_limited" for call in storm
    )
    broke = sum(call.refusal is not None for call in storm) - refused
    # On a busy machine longer, but not so long that nothing would be too early.
    on_their_way_s = min(ON_THEIR_WAY_S + TURNS * held_up.worst_s, RETRY_AFTER_S / 2)
    early, most = early_calls(storm, on_their_way_s), most_in([call.came_s for call in log], 1.0)
    most_of_chat = max(
        most_in([call.came_s for call in log if call.chat_id == chat], 1.0) for _, chat in crowd
    )

    figure(
        f"a storm on the fake {kind} ({service.db.dialect})",
        f"{seconds} s, {len(storm)} calls, {refused} refused, {broke} broken; {early} too early,"
        f" at most {most} in a second; {count} queued, {len(shown)} shown",
        calls=len(storm),
        early=early,
        most_in_a_second=most,
        twice=sum(times - 1 for times in shown.values()),
    )
    assert refused + broke >= LEAST_REFUSED
    assert early == 0
    assert most <= PER_BOT_S
    assert most_of_chat <= stage.per_chat_s
    assert found == {("sent", None): count}
    assert (len(shown), set(shown.values())) == (count, {1})
    assert overtaken([call for call in storm if call.refusal is None]) == []


async def subscribed(service: Service, project_id: str, chats: Sequence[str]) -> list[str]:
    async with service.db.transaction() as tx:
        return [
            (
                await service.subscribers.ensure(
                    tx,
                    project_id,
                    "messenger_a",
                    ChannelUser(chat_id, "P", None, "en"),
                    chat_id,
                    source="api",
                )
            ).subscriber_id
            for chat_id in chats
        ]


async def greeted(service: Service, stage: Stage, people: int) -> bool:
    """Whether the bot has answered everybody's Start, and is at rest."""
    if len([call for call in stage.log() if call.refusal is None]) < people:
        return False
    await settled(service)
    return True


@dataclass
class HeldUp:
    """By how many seconds the loop was late at worst."""

    worst_s: float = 0.0


@asynccontextmanager
async def watching_the_loop() -> AsyncIterator[HeldUp]:
    found = HeldUp()

    async def watch() -> None:
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(LOOK_S)  # how much longer it takes is what is looked at
            found.worst_s = max(found.worst_s, time.monotonic() - began_s - LOOK_S)

    watching = asyncio.create_task(watch())
    try:
        yield found
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def has_refused(stage: Stage, before: int, count: int) -> bool:
    return sum(call.refusal is not None for call in stage.log()[before:]) >= count


async def passed(until_s: float) -> bool:
    return time.monotonic() >= until_s


async def over(service: Service) -> bool:
    return not (await ends(service)).get(None)
