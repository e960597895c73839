"""A platform that refuses half of all calls and breaks under a fifth of them."""

import random
import time
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from msgsvc_core.channels import DeliveryError, Pace, Reason
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory
from tests.faults.conftest import Figure, Rounds
from tests.faults.recorder import Call, Recorder, queue, subscribed

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("backend", "runner"),
        [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
        indirect=True,
    ),
]

PACE = Pace(per_bot_s=30, per_chat_s=1)

#: Seconds that the platform asks to wait.
RETRY_AFTER_S = 1.0

#: Seconds after the storm within which what it held back must be over.
AFTERMATH_S = 120

#: The least that is waited after a 5xx: one second, a fifth less by jitter.
LEAST_BACKOFF_S = 0.8


class Storm:
    """Of all calls 5 % are answered with a 429 for the bot, 45 % with one for the chat, 20 % with a
    5xx, until it is over."""

    def __init__(self, seconds: float) -> None:
        self._ends_s = time.monotonic() + seconds
        self._random = random.Random(7)
        self.refused = 0
        self.broke = 0

    def answer(self, _call: Call) -> DeliveryError | None:
        # On a busy machine few calls are made in that time.
        if time.monotonic() > self._ends_s and self.refused > 5 and self.broke > 2:
            return None
        drawn = self._random.random()
        if drawn < 0.5:
            self.refused += 1
            return DeliveryError(
                Reason.RATE_LIMITED,
                "slow down",
                RETRY_AFTER_S,
                scope="bot" if drawn < 0.05 else "chat",
            )
        if drawn < 0.7:
            self.broke += 1
            return DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")
        return None


async def test_a_storm_breaches_nothing_and_loses_nothing(
    make_service: ServiceFactory, rounds: Rounds, figure: Figure
) -> None:
    seconds, count = rounds(short=6, long=60), rounds(short=120, long=1500)
    recorder = Recorder(PACE)
    service = await make_service(
        extra_plugins=[("recorder", recorder)],
        use_clock=SystemClock(),
        channels={"messenger_a": {"plugin": "recorder"}},
    )
    project = await service.projects.create("Shop")
    people = await subscribed(service, project.project_id, count // 3)
    storm = Storm(seconds)
    recorder.answer = storm.answer
    await queue(service, project.project_id, people, count)

    async def over() -> bool:
        return not (await ends(service)).get(None)

    await until(over, timeout_s=seconds + AFTERMATH_S, interval_s=0.1)
    found = await ends(service)
    early, most = early_calls(recorder.calls), recorder.most_in(1.0)
    most_of_chat = max(recorder.most_in(1.0, f"chat-{n}") for n in range(len(people)))
    shown = Counter(call.text for call in recorder.taken())

    figure(
        f"a storm of 429 and 5xx ({service.db.dialect})",
        f"{seconds} s, {len(recorder.calls)} calls, {storm.refused} refused, {storm.broke} broken;"
        f" {early} too early, at most {most} in a second; {count} queued, {len(shown)} shown",
        calls=len(recorder.calls),
        early=early,
        most_in_a_second=most,
        lost=count - sum(found.values()),
        twice=sum(times - 1 for times in shown.values()),
    )
    assert storm.refused > 5
    assert storm.broke > 2
    assert early == 0
    assert most <= PACE.per_bot_s  # type: ignore[operator]  # it has a value
    assert most_of_chat == 1
    assert set(found) <= {("sent", None), ("failed", "platform_unavailable")}
    assert found["sent", None] == len(shown)
    assert set(shown.values()) == {1}
    assert overtaken(recorder.taken()) == []


async def ends(service: Service) -> dict[tuple[str, str | None] | None, int]:
    """How many messages came to which end, with which reason; None for those without one yet."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all(
            "SELECT status, reason, COUNT(*) AS count FROM core_messages GROUP BY status, reason"
        )
    found: dict[tuple[str, str | None] | None, int] = defaultdict(int)
    for row in rows:
        is_over = row["status"] not in {"queued", "sending"}
        found[(row["status"], row["reason"]) if is_over else None] += row["count"]
    return found


def early_calls(calls: list[Call], on_their_way_s: float = 0.0) -> int:
    """Calls that came before the platform, or the backoff, allowed it.

    Not those that were on their way when the refusal was: they came within `on_their_way_s` of it.
    """
    early = 0
    for refused in calls:
        if refused.refusal is None:
            continue
        of_bot, wait_s = False, LEAST_BACKOFF_S
        if refused.refusal.reason is Reason.RATE_LIMITED:
            of_bot, wait_s = refused.refusal.scope == "bot", RETRY_AFTER_S
        early += sum(
            refused.answered_s + on_their_way_s < call.came_s < refused.answered_s + wait_s
            for call in calls
            if of_bot or call.chat_id == refused.chat_id
        )
    return early


def overtaken(taken: list[Call]) -> list[str]:
    """Messages that were shown in a chat after a later one of theirs."""
    by_chat: dict[str, list[int]] = defaultdict(list)
    for call in taken:
        by_chat[call.chat_id].append(int(call.text))
    return [
        f"{chat_id}: {later} after {earlier}"
        for chat_id, numbers in by_chat.items()
        for earlier, later in pairwise(numbers)
        if later < earlier
    ]
