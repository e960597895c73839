"""What follows from an attempt to send: whether it is final, when to try again, and what stays in doubt."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import (
    ChannelPaused,
    DeliveryError,
    LimitReached,
    LocalFailure,
    Reason,
)
from msgsvc_core.channels.outbound.send_attempt import (
    DELIVERED,
    HELD,
    PATIENCE_S,
    REJECTED,
    UNKNOWN,
    Outcome,
    RetryPolicy,
    SendAttempt,
    run_by_chat,
)
from msgsvc_core.jobs.contract import Backoff, Job, JobContext, Reschedule

NOW_MS = 1_000_000_000

#: Seconds that the fake gate waits after the n-th call: easy to recognise.
WAIT_S = 100.0

POLICY = RetryPolicy(lambda attempts: attempts * WAIT_S, max_attempts=3, max_wait_ms=60_000)

FINAL_REASONS = sorted(reason for reason in Reason if not reason.retryable)


class FakeGate:
    """Lets calls through, or raises `stops`; keeps what it was asked to put back."""

    def __init__(self) -> None:
        self.closed = False
        self.stops: Exception | None = None
        self.chat_delays_s: dict[str, float] = {}
        self.calls: list[tuple[str, str | None]] = []

    def chat_delay_s(self, chat_id: str, patience_s: float) -> float | None:
        delay_s = self.chat_delays_s.get(chat_id, 0.0)
        return delay_s if delay_s > patience_s else None

    async def call(
        self, channel: Channel, job: Job, chat_id: str | None, make: Callable[[], Awaitable[Any]]
    ) -> Any:
        return await self._call("call", chat_id, make)

    async def call_in_flight(
        self, channel: Channel, job: Job, chat_id: str | None, make: Callable[[], Awaitable[Any]]
    ) -> Any:
        return await self._call("call_in_flight", chat_id, make)

    async def _call(
        self, kind: str, chat_id: str | None, make: Callable[[], Awaitable[Any]]
    ) -> Any:
        if self.stops is not None:
            raise self.stops
        self.calls.append((kind, chat_id))
        return await make()

    def retry_at_ms(self, error: DeliveryError, backoff: Backoff, attempts: int) -> int:
        wait_s = backoff(attempts) if error.retry_after_s is None else error.retry_after_s
        return NOW_MS + round(wait_s * 1000)

    def reschedule(
        self, jobs: Sequence[Job], at_ms: int, *, counts: bool = False
    ) -> list[Reschedule]:
        return [
            Reschedule(job, at_ms + number, counts and number == 0)
            for number, job in enumerate(jobs)
        ]

    def release(self, jobs: Sequence[Job]) -> list[Reschedule]:
        return [Reschedule(job, None) for job in jobs]


class FakeContext:
    """Keeps what the jobs of a batch were put back with."""

    def __init__(self) -> None:
        self.back: list[list[Reschedule]] = []

    @asynccontextmanager
    async def putting_back(self, back: list[Reschedule]) -> AsyncIterator[None]:
        self.back.append(back)
        yield


@pytest.fixture
def gate() -> FakeGate:
    return FakeGate()


def job(number: int = 1, *, attempts: int = 1, refused_from_ms: int | None = None) -> Job:
    return Job(
        job_id=f"job_{number}",
        name="message.deliver",
        lane="channel:shop",
        payload={},
        attempts=attempts,
        deliveries=attempts,
        created_at_ms=NOW_MS,
        project_id="prj_1",
        refused_from_ms=refused_from_ms,
    )


def attempt(failure: DeliveryError | None = None, **given: Any) -> SendAttempt:
    made = SendAttempt(job(), **{"attempts": 1, **given})
    made.failure = failure
    return made


def error(
    reason: Reason, retry_after_s: float | None = None, *, in_doubt: bool = False
) -> DeliveryError:
    return DeliveryError(reason, "the platform says so", retry_after_s, in_doubt=in_doubt)


def outage() -> DeliveryError:
    """A failure while the platform answers nobody."""
    failure = error(Reason.PLATFORM_UNAVAILABLE)
    failure.outage = True
    return failure


def outcome_of(
    made: SendAttempt, gate: FakeGate, policy: RetryPolicy = POLICY, *, repeatable: bool = False
) -> Outcome:
    return made.outcome(gate, policy, NOW_MS, repeatable=repeatable)


async def make(made: SendAttempt, gate: FakeGate, **given: Any) -> None:
    async def send() -> str:
        return "ref_1"

    await made.make(gate, cast(Channel, FakeChannel()), "chat_1", send, **given)


class FakeChannel:
    key = "shop"


# ---- the call -----------------------------------------------------------------------------------


async def test_a_call_that_is_answered_keeps_the_platforms_reference(gate: FakeGate) -> None:
    made = attempt()
    await make(made, gate)

    assert (made.message_ref, made.failure, made.delay_ms) == ("ref_1", None, None)
    assert outcome_of(made, gate) == DELIVERED


@pytest.mark.parametrize(
    ("in_flight", "kind"), [(False, "call"), (True, "call_in_flight")], ids=["alone", "in flight"]
)
async def test_a_slot_is_taken_unless_the_caller_has_one(
    gate: FakeGate, in_flight: bool, kind: str
) -> None:
    await make(attempt(), gate, in_flight=in_flight)

    assert gate.calls == [(kind, "chat_1")]


async def test_a_chat_whose_turn_is_far_off_gets_no_call_until_then(gate: FakeGate) -> None:
    made = attempt()
    gate.chat_delays_s["chat_1"] = PATIENCE_S + 0.0004
    await make(made, gate)

    assert gate.calls == []
    # Rounded up: a moment early, it would be put back once more.
    assert outcome_of(made, gate) == Outcome("held", NOW_MS + 1101)


async def test_a_chat_whose_turn_is_near_is_waited_for(gate: FakeGate) -> None:
    gate.chat_delays_s["chat_1"] = PATIENCE_S
    await make(attempt(), gate)

    assert gate.calls == [("call", "chat_1")]


async def test_the_chat_is_not_looked_at_where_the_caller_has_looked(gate: FakeGate) -> None:
    gate.chat_delays_s["chat_1"] = 60.0
    await make(attempt(), gate, patience_s=None)

    assert gate.calls == [("call", "chat_1")]


async def test_a_call_that_shows_nothing_in_a_chat_waits_for_none(gate: FakeGate) -> None:
    made = attempt()

    async def answer() -> None:
        return None

    await made.make(gate, cast(Channel, FakeChannel()), None, answer)

    assert gate.calls == [("call", None)]
    assert outcome_of(made, gate) == DELIVERED


async def test_a_paused_bot_holds_the_job_until_it_may_call_again(gate: FakeGate) -> None:
    made = attempt()
    gate.stops = ChannelPaused()
    await make(made, gate)

    assert made.failure is None
    assert outcome_of(made, gate) == HELD


async def test_a_refusal_is_kept_and_not_raised(gate: FakeGate) -> None:
    made = attempt()
    gate.stops = error(Reason.USER_BLOCKED_BOT)
    await make(made, gate)

    assert made.failure is gate.stops


async def test_a_channel_that_breaks_its_contract_fails_its_message_alone(gate: FakeGate) -> None:
    made = attempt()
    gate.stops = ZeroDivisionError("of the channel's own code")
    await make(made, gate)

    assert made.failure is not None
    # Its text may name what is the operator's alone.
    assert (made.failure.reason, made.failure.text) == (Reason.UNKNOWN, "ZeroDivisionError")
    assert outcome_of(made, gate) == REJECTED


# ---- what follows -------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", FINAL_REASONS)
def test_a_refusal_of_the_message_or_person_is_final(gate: FakeGate, reason: Reason) -> None:
    assert outcome_of(attempt(error(reason)), gate) == REJECTED


def test_a_failure_of_the_platform_is_tried_again_by_the_backoff_and_counts(gate: FakeGate) -> None:
    made = attempt(error(Reason.PLATFORM_UNAVAILABLE), attempts=2)

    assert outcome_of(made, gate) == Outcome("retry", NOW_MS + 200_000, counts=True)


def test_the_last_attempt_is_final(gate: FakeGate) -> None:
    made = attempt(error(Reason.PLATFORM_UNAVAILABLE), attempts=3)

    assert outcome_of(made, gate) == REJECTED


def test_a_files_host_that_is_away_is_tried_again_as_a_platform_is(gate: FakeGate) -> None:
    made = attempt(LocalFailure(Reason.PLATFORM_UNAVAILABLE, "the file's host is away"))

    assert outcome_of(made, gate) == Outcome("retry", NOW_MS + 100_000, counts=True)


def test_what_a_limit_of_the_channels_own_stops_is_rejected_at_once(gate: FakeGate) -> None:
    made = attempt(LimitReached("5 messages an hour to one number"))

    assert outcome_of(made, gate) == REJECTED
    assert made.failure is not None
    assert made.failure.reason is Reason.RATE_LIMITED


def test_a_rate_limit_waits_as_long_as_the_platform_says_and_counts_for_nothing(
    gate: FakeGate,
) -> None:
    made = attempt(error(Reason.RATE_LIMITED, 7.0), attempts=3)

    assert outcome_of(made, gate) == Outcome("retry", NOW_MS + 7_000, rate_limited=True)


def test_a_rate_limit_without_a_time_waits_longer_with_each_call(gate: FakeGate) -> None:
    # Two attempts, and five calls with those that a platform asked to repeat later.
    made = attempt(error(Reason.RATE_LIMITED), attempts=2, calls=5)

    assert outcome_of(made, gate) == Outcome("retry", NOW_MS + 500_000, rate_limited=True)


def test_the_wait_after_a_failure_leaves_rate_limited_calls_out(gate: FakeGate) -> None:
    made = attempt(error(Reason.PLATFORM_UNAVAILABLE), attempts=2, calls=5)

    assert outcome_of(made, gate) == Outcome("retry", NOW_MS + 200_000, counts=True)


def test_an_outage_of_the_platform_takes_up_no_attempt(gate: FakeGate) -> None:
    made = attempt(outage(), attempts=3)

    assert outcome_of(made, gate) == Outcome("retry", NOW_MS + 300_000, rate_limited=True)


@pytest.mark.parametrize("failure", [error(Reason.RATE_LIMITED, 7.0), outage()])
def test_what_waits_goes_back_to_its_place_if_the_gate_has_closed_since(
    gate: FakeGate, failure: DeliveryError
) -> None:
    gate.closed = True

    assert outcome_of(attempt(failure), gate) == Outcome("retry", rate_limited=True)


def test_a_failure_of_its_own_waits_for_its_own_time_though_the_gate_has_closed(
    gate: FakeGate,
) -> None:
    gate.closed = True

    found = outcome_of(attempt(error(Reason.PLATFORM_UNAVAILABLE)), gate)

    assert found == Outcome("retry", NOW_MS + 100_000, counts=True)


@pytest.mark.parametrize(
    ("since_ms", "expected"),
    [
        (None, Outcome("retry", NOW_MS + 7_000, rate_limited=True)),
        (NOW_MS - 59_999, Outcome("retry", NOW_MS + 7_000, rate_limited=True)),
        (NOW_MS - 60_000, REJECTED),
    ],
    ids=["the first", "a moment before", "as long as it may"],
)
def test_a_platform_that_asks_to_wait_for_too_long_ends_it(
    gate: FakeGate, since_ms: int | None, expected: Outcome
) -> None:
    made = attempt(error(Reason.RATE_LIMITED, 7.0), rate_limited_since_ms=since_ms)

    assert outcome_of(made, gate) == expected


def test_without_a_limit_a_platform_may_ask_to_wait_for_good(gate: FakeGate) -> None:
    policy = RetryPolicy(POLICY.backoff, max_attempts=3)
    made = attempt(error(Reason.RATE_LIMITED, 7.0), rate_limited_since_ms=0)

    assert outcome_of(made, gate, policy).status == "retry"


def test_a_wait_that_is_over_ends_it_though_the_gate_has_closed(gate: FakeGate) -> None:
    gate.closed = True
    made = attempt(error(Reason.RATE_LIMITED), rate_limited_since_ms=NOW_MS - 60_000)

    assert outcome_of(made, gate) == REJECTED


def test_time_does_not_end_what_has_attempts_left(gate: FakeGate) -> None:
    made = attempt(error(Reason.PLATFORM_UNAVAILABLE), rate_limited_since_ms=0)

    assert outcome_of(made, gate).status == "retry"


# ---- in doubt -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [Reason.PLATFORM_UNAVAILABLE, Reason.RATE_LIMITED])
def test_what_may_have_arrived_is_not_tried_again_where_a_repeat_is_seen(
    gate: FakeGate, reason: Reason
) -> None:
    assert outcome_of(attempt(error(reason, in_doubt=True)), gate) == UNKNOWN


def test_what_may_have_arrived_is_tried_again_where_repeats_are_dropped(gate: FakeGate) -> None:
    made = attempt(error(Reason.PLATFORM_UNAVAILABLE, in_doubt=True))

    found = outcome_of(made, gate, repeatable=True)

    assert found == Outcome("retry", NOW_MS + 100_000, counts=True)


def test_the_last_attempt_of_what_may_have_arrived_ends_it_as_unknown(gate: FakeGate) -> None:
    made = attempt(error(Reason.PLATFORM_UNAVAILABLE, in_doubt=True), attempts=3)

    assert outcome_of(made, gate, repeatable=True) == UNKNOWN


def test_a_refusal_after_an_attempt_in_doubt_ends_it_as_unknown(gate: FakeGate) -> None:
    made = attempt(error(Reason.USER_BLOCKED_BOT), was_in_doubt=True)

    assert outcome_of(made, gate, repeatable=True) == UNKNOWN


def test_an_answer_after_an_attempt_in_doubt_settles_it(gate: FakeGate) -> None:
    assert outcome_of(attempt(was_in_doubt=True), gate, repeatable=True) == DELIVERED


@pytest.mark.parametrize("was_in_doubt", [False, True])
@pytest.mark.parametrize("is_in_doubt", [False, True])
def test_doubt_is_of_this_attempt_or_of_one_before(was_in_doubt: bool, is_in_doubt: bool) -> None:
    failure = error(Reason.PLATFORM_UNAVAILABLE, in_doubt=is_in_doubt)

    assert attempt(failure, was_in_doubt=was_in_doubt).in_doubt == (was_in_doubt or is_in_doubt)


def test_an_attempt_without_a_failure_puts_nothing_in_doubt() -> None:
    assert not attempt().in_doubt


# ---- the job ------------------------------------------------------------------------------------


def test_the_attempt_of_a_job_counts_as_the_job_does() -> None:
    made = SendAttempt.of_job(job(attempts=4, refused_from_ms=NOW_MS - 5))

    assert (made.attempts, made.calls, made.rate_limited_since_ms) == (4, 4, NOW_MS - 5)


@pytest.mark.parametrize(
    ("outcome", "is_final"),
    [
        (DELIVERED, True),
        (REJECTED, True),
        (UNKNOWN, True),
        (HELD, False),
        (Outcome("retry"), False),
    ],
    ids=lambda value: value.status if isinstance(value, Outcome) else "",
)
def test_only_what_is_delivered_rejected_or_unknown_is_final(
    outcome: Outcome, is_final: bool
) -> None:
    assert outcome.is_final == is_final


def test_a_retry_puts_the_chats_later_jobs_back_behind_it(gate: FakeGate) -> None:
    first, second = job(1), job(2)

    back = Outcome("retry", NOW_MS, counts=True).reschedule(gate, [first, second])

    assert back == [Reschedule(first, NOW_MS, True), Reschedule(second, NOW_MS + 1)]


def test_with_a_closed_gate_all_go_back_to_their_places(gate: FakeGate) -> None:
    first, second = job(1), job(2)

    assert HELD.reschedule(gate, [first, second]) == [
        Reschedule(first, None),
        Reschedule(second, None),
    ]


@pytest.mark.parametrize("at_ms", [None, NOW_MS])
def test_since_when_the_platform_asks_to_wait_is_kept_of_the_first_job_alone(
    gate: FakeGate, at_ms: int | None
) -> None:
    outcome = Outcome("retry", at_ms, rate_limited=True)

    assert [each.refused for each in outcome.reschedule(gate, [job(1), job(2)])] == [True, False]


# ---- chats --------------------------------------------------------------------------------------


async def test_jobs_of_a_chat_run_in_their_order_until_one_goes_back() -> None:
    ctx, ran = FakeContext(), []
    jobs = [job(1), job(2), job(3)]

    async def run_first(left: Sequence[Job]) -> list[Reschedule]:
        ran.append(left[0].job_id)
        return [Reschedule(each, None) for each in left] if left[0] is jobs[1] else []

    await run_by_chat(cast(JobContext, ctx), [jobs], run_first)

    assert ran == ["job_1", "job_2"]
    assert ctx.back == [[Reschedule(jobs[1], None), Reschedule(jobs[2], None)]]


async def test_a_chat_that_fails_is_raised_when_the_others_have_ended() -> None:
    ended: list[str] = []

    async def run_first(left: Sequence[Job]) -> list[Reschedule]:
        if left[0].job_id == "job_1":
            raise ZeroDivisionError
        ended.append(left[0].job_id)
        return []

    with pytest.raises(ZeroDivisionError):
        await run_by_chat(
            cast(JobContext, FakeContext()), [[job(1), job(2)], [job(3), job(4)]], run_first
        )

    assert ended == ["job_3", "job_4"]
