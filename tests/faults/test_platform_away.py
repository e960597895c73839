"""A platform that is away in the middle of a broadcast and of single messages, over real HTTP."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest

import msgsvc_telegram.plugin
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.certificates import client_context, server_context, write_certificate
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.telegram import FakeTelegram
from tests.faults.conftest import Figure, Rounds
from tests.faults.front import Front, Mode
from tests.faults.names import Names
from tests.faults.recorder import most_in
from tests.faults.test_platform_storm import subscribed

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"), [("sqlite", "embedded"), ("postgresql", "redis")], indirect=True
    ),
]

#: Chats with several single messages, and how many each.
CHATS, EACH = 5, 3

PER_BOT_S = 30


async def test_what_waited_goes_out_once_and_in_order_when_the_platform_is_back(
    make_service: ServiceFactory,
    rounds: Rounds,
    figure: Figure,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    names = Names(monkeypatch)
    trusted = write_certificate(tmp_path / "trusted.pem", "platform.test")
    untrusted = write_certificate(tmp_path / "untrusted.pem", "platform.test")
    # As if the machine knew it.
    context = client_context(trusted)
    monkeypatch.setattr("msgsvc_core.http_client.connecting.trust", lambda ca_file=None: context)
    people, each_s = rounds(short=90, long=20_000), rounds(short=1, long=360)
    # Until a call is taken for lost; on a busy machine some wait for a moment.
    call_s = 10
    # A broadcast to many takes its time by the pace that Telegram asks for.
    per_bot_s = rounds(short=PER_BOT_S, long=10 * PER_BOT_S)
    async with (
        FakeTelegram() as fake,
        Front(
            fake.url, trusted=server_context(trusted), untrusted=server_context(untrusted)
        ) as front,
    ):
        service = await make_service(
            extra_plugins=[("telegram", msgsvc_telegram.plugin)],
            use_clock=SystemClock(),
            channels={
                "messenger_a": {
                    "plugin": "telegram",
                    "token": fake.bot.token,
                    "base_url": front.url_by("platform.test"),
                    "timeout_s": call_s,
                    "per_bot_s": per_bot_s,
                }
            },
            jobs={"probe_first_s": 0.1, "probe_most_s": 0.5},
        )
        crowd = [fake.person(f"Person {number}") for number in range(people)]
        chats = [str(person.user_id) for person in crowd]
        for person in crowd:
            await person.start()
        await until(lambda: is_quiet(fake, people), timeout_s=60 + people / 10, interval_s=0.1)
        project_id = (await service.projects.create("Shop")).project_id
        subscribers = await subscribed(service, project_id, chats)
        before = len(fake.calls)
        new = NewMailing("test", MailingMessage(text="news"), Audience(all=True))
        async with service.db.transaction() as tx:
            job_id = (await service.mailings.start(tx, project_id, new)).job_id
        await until(lambda: has_shown(fake, before, "news", 10), interval_s=0.05)

        away_from_s = time.monotonic()
        said: dict[str, Any] = {}
        modes: tuple[Mode | Literal["unresolved"], ...] = (
            "hang",
            "refused",
            "unresolved",
            "502",
            "tls",
        )
        for mode in modes:
            names.are_resolved = mode != "unresolved"
            await front.be("refused" if mode == "unresolved" else mode)
            if mode == "unresolved":
                # An address is remembered for 10 s.
                await until(lambda: have_failed(names))
            if mode == "tls":
                await until(lambda: is_distrusted(front))
            said[mode] = await until(lambda: away(service), timeout_s=call_s * 4)
            await asyncio.sleep(each_s)  # the outage lasts so long, whatever happens meanwhile
        for number in range(EACH):
            for subscriber_id in subscribers[:CHATS]:
                await service.messages.send(
                    project_id, subscriber_id=subscriber_id, text=f"single {number}"
                )
        async with service.db.transaction() as tx:
            code = OutgoingMessage(text="your code", format="plain")
            await service.outbox.send(tx, "messenger_a", chats[-1], code)
        tried = len(fake.calls_of("sendMessage"))
        waited_s = time.monotonic() - away_from_s
        names.are_resolved = True
        await front.be("open")
        await until(lambda: has_ended(service), timeout_s=60 + people / 10, interval_s=0.1)
        recovered = not await away(service)

    after = [call.params["text"] for call in fake.calls_of("sendMessage")[tried:]]
    sends = [call for call in fake.calls[before:] if call.method == "sendMessage"]
    got = Counter((str(call.chat_id), call.params["text"]) for call in sends if call.status == 200)
    statuses = Counter(row["status"] for row in await rows(service, "core_messages"))
    recipients = Counter(row["status"] for row in await rows(service, "core_recipients"))
    left = [row for row in await rows(service, "core_subscribers") if row["status"] != "active"]
    in_doubt = len(front.swallowed)
    most = most_in([call.at for call in sends], 1.0)
    figure(
        f"a platform away for {waited_s:.0f} s in the middle of a broadcast ({service.db.dialect})",
        f"{people} recipients and {CHATS * EACH} single messages: {sum(got.values())} shown,"
        f" {in_doubt} taken and never answered, {dict(statuses)}, at most {most} in a second",
        people=people,
        in_doubt=in_doubt,
        unknown=statuses["unknown"],
        failed=statuses["failed"],
        twice=sum(times - 1 for times in got.values()),
    )
    assert set(said) == set(modes)
    assert recovered
    assert statuses == +Counter(sent=people + CHATS * EACH - in_doubt, unknown=in_doubt)
    assert recipients == +Counter(sent=people - in_doubt, unknown=in_doubt)
    assert set(got.values()) == {1}
    assert sum(got.values()) == people + CHATS * EACH + 1 - in_doubt
    assert "your code" in after[: service.settings.jobs.trial_calls]
    for chat in chats[:CHATS]:
        texts = [call.params["text"] for call in sends if str(call.chat_id) == chat]
        assert [text for text in texts if text != "news"] == [f"single {n}" for n in range(EACH)]
    assert left == []
    assert most <= per_bot_s
    assert job_id


async def have_failed(names: Names) -> bool:
    return names.failed > 0


async def is_distrusted(front: Front) -> bool:
    return front.distrusted > 0


async def is_quiet(fake: FakeTelegram, people: int) -> bool:
    """Whether the bot has answered everybody's Start."""
    return len(fake.calls_of("sendMessage")) >= people


async def has_shown(fake: FakeTelegram, before: int, text: str, count: int) -> bool:
    sends = [call for call in fake.calls[before:] if call.method == "sendMessage"]
    return sum(call.params["text"] == text for call in sends) >= count


async def away(service: Service) -> Any:
    async with service.db.read() as tx:
        state = await service.get(ChannelStates).find(tx, "messenger_a")
    return state if state is not None and state.outage_since_ms is not None else None


async def has_ended(service: Service) -> bool:
    """Whether nothing waits or is under way."""
    jobs = await rows(service, "core_jobs")
    return not any(row["lane"].startswith("channel:") for row in jobs)


async def rows(service: Service, table: str) -> Any:
    async with service.db.read() as tx:
        return await tx.fetch_all(f"SELECT * FROM {table}")
