"""kill -9 of who sends a broadcast by a channel of ours, and what the platform shows of it.

Matrix takes a transaction id: there nobody is in doubt, and nobody sees a message twice. Mail, text messages
and WhatsApp take none: who was in the platform's hands ends as `unknown`, and is not written to again.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import msgsvc_email.plugin
import msgsvc_matrix.plugin
import msgsvc_sms.plugin
import msgsvc_whatsapp.plugin
from msgsvc_core.mailings.sending import MAX_RECIPIENTS_IN_FLIGHT
from msgsvc_devkit import until
from msgsvc_devkit.platforms.email import FakeMail
from msgsvc_devkit.platforms.matrix import FakeMatrix
from msgsvc_devkit.platforms.sms import FakeSmsCentre
from msgsvc_devkit.platforms.whatsapp import FakeWhatsApp
from msgsvc_devkit.runners import TestRunner
from tests.faults.campaign import Receiver, campaign
from tests.faults.conftest import Figure, Rounds

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("runner", ["embedded"], indirect=True),
]

#: The limits of text messages, which are not what is looked at here.
UNLIMITED = dict.fromkeys(
    (
        *("number_hour", "number_day", "prefix_hour", "new_numbers_hour", "new_numbers_day"),
        *("project_hour", "project_day", "segments_day"),
    ),
    0,
)


@dataclass(frozen=True)
class Platform:
    """A fake platform with its people: how often each has been shown a message, in their order."""

    plugin: ModuleType
    settings: dict[str, Any]
    receivers: Sequence[Receiver]
    shown: Callable[[], list[int]]


@asynccontextmanager
async def email(people: int, per_s: int) -> AsyncIterator[Platform]:
    async with FakeMail() as fake:
        known = [fake.person(f"Person{number}") for number in range(people)]
        yield Platform(
            msgsvc_email.plugin,
            {**fake.settings, "per_second": per_s},
            [Receiver(one.address, one.address) for one in known],
            lambda: [len(one.messages) for one in known],
        )


@asynccontextmanager
async def sms(people: int, per_s: int) -> AsyncIterator[Platform]:
    async with FakeSmsCentre() as fake:
        known = [fake.person("Person", f"+49151{number:08d}") for number in range(people)]
        yield Platform(
            msgsvc_sms.plugin,
            {**fake.settings, **UNLIMITED, "per_second": per_s},
            [Receiver(one.number, one.number) for one in known],
            lambda: [len(one.messages) for one in known],
        )


@asynccontextmanager
async def whatsapp(people: int, per_s: int) -> AsyncIterator[Platform]:
    async with FakeWhatsApp() as fake:
        fake.templates["notice", "en"] = "News for you: {{1}}. Answer to write with us."
        known = [fake.person(f"Person {number}") for number in range(people)]
        yield Platform(
            msgsvc_whatsapp.plugin,
            {
                **fake.settings,
                "template": "notice",
                "template_language": "en",
                "per_bot_s": per_s,
            },
            [Receiver(one.user_id, one.user_id) for one in known],
            lambda: [len(one.messages) for one in known],
        )


@asynccontextmanager
async def matrix(people: int, per_s: int) -> AsyncIterator[Platform]:
    async with FakeMatrix() as fake:
        fake.accepts_invites = True
        known = [fake.person(f"Person{number}") for number in range(people)]
        for one in known:
            await one.start()
        yield Platform(
            msgsvc_matrix.plugin,
            {**fake.settings, "per_bot_s": per_s},
            [Receiver(one.user_id, one.chat_id) for one in known],
            # The bot greets who opened a chat.
            lambda: [sum(shown.text == "Hi" for shown in one.messages) for one in known],
        )


@pytest.mark.parametrize(
    ("name", "open_platform", "is_repeatable"),
    [
        ("email", email, False),
        ("sms", sms, False),
        ("whatsapp", whatsapp, False),
        ("matrix", matrix, True),
    ],
    ids=["email", "sms", "whatsapp", "matrix"],
)
async def test_nobody_is_lost_and_nobody_is_sent_to_twice_on_any_channel(
    tmp_path: Path,
    databases: Any,
    runner: TestRunner,
    rounds: Rounds,
    figure: Figure,
    name: str,
    open_platform: Callable[[int, int], Any],
    is_repeatable: bool,
) -> None:
    kills, people = rounds(short=2, long=20), rounds(short=400, long=20_000)
    async with open_platform(people, rounds(short=100, long=400)) as platform:
        settings = {key: value for key, value in platform.settings.items() if key != "plugin"}
        channel = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
        async with campaign(
            tmp_path,
            databases,
            runner,
            people,
            messenger=platform.plugin,
            name=name,
            channel=channel,
            receivers=platform.receivers,
        ) as this:
            await this.ask("Hi")
            for number in range(kills):
                server = await asyncio.to_thread(this.start)
                try:
                    before = sum(platform.shown())

                    async def some_are_sent(before: int = before) -> bool:
                        return sum(platform.shown()) > before

                    await until(some_are_sent, timeout_s=60)
                    await asyncio.sleep(random.uniform(0, 0.3))
                finally:
                    await asyncio.to_thread(server.kill)
                assert not await this.is_ended(), f"it had ended before kill {number + 1}"
            last = await asyncio.to_thread(this.start)
            try:
                await until(this.is_ended, timeout_s=max(120, people / 40))
            finally:
                await asyncio.to_thread(last.end)
            mailing, status_of, told = (
                await this.mailing(),
                await this.statuses(),
                await this.told(),
            )

        shown = dict(
            zip((one.chat_id for one in platform.receivers), platform.shown(), strict=True)
        )

    statuses = Counter(status_of.values())
    twice = sum(times > 1 for times in shown.values())
    lost = sum(status == "sent" and not shown[chat] for chat, status in status_of.items())
    figure(
        f"kill -9 during a broadcast by {name}",
        f"{kills} kills, {people} recipients: {dict(statuses)}, {lost} lost, {twice} sent to twice",
        kills=kills,
        recipients=people,
        unknown=statuses["unknown"],
        lost=lost,
        twice=twice,
    )
    assert (lost, twice) == (0, 0)
    assert set(statuses) <= ({"sent"} if is_repeatable else {"sent", "unknown"})
    assert statuses["unknown"] <= kills * MAX_RECIPIENTS_IN_FLIGHT
    assert (mailing["sent"], mailing["total"]) == (statuses["sent"], people)
    assert told == ["broadcast.completed"]
