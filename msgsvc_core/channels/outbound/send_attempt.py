"""One attempt to send, edit or delete something on a channel, and what follows from how it went.

Everything that goes out passes through here: messages, recipients of mailings, system messages, edits. Each
kind records outcomes in tables of its own; whether one is final, when to try again, whether that takes up an
attempt, and whether a person may have seen something is decided here alone.

Who calls this marks what it sends as being sent beforehand, and no more than has a slot in flight: after a
crash nobody knows whether it arrived (docs/decisions/0007-crash-during-delivery.md, 0014-pacing.md).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, Protocol, TypeVar

import structlog

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import (
    ChannelPaused,
    DeliveryError,
    LimitReached,
    Reason,
    WaitedTooLong,
)
from msgsvc_core.jobs.contract import Backoff, Job, JobContext, Reschedule, as_rate_limited
from msgsvc_core.kernel.storable_text import storable
from msgsvc_core.kernel.tracing import within
from msgsvc_core.kernel.values import value_object

T = TypeVar("T")

#: Seconds that an attempt may wait for its chat's turn with its batch; for longer it goes back.
PATIENCE_S = 1.1

#: `delivered`, and `rejected` and `unknown`, are final. Of `unknown` nobody knows whether the person saw it.
#: `retry` follows a failure; with `held` no call was made.
Status = Literal["delivered", "rejected", "unknown", "retry", "held"]

log = structlog.get_logger(__name__)


class AttemptGate(Protocol):
    """What an attempt needs of a channel's gate, see `OutboundGate`."""

    @property
    def closed(self) -> bool: ...

    def chat_delay_s(self, chat_id: str, patience_s: float) -> float | None: ...

    async def call(
        self, channel: Channel, job: Job, chat_id: str | None, make: Callable[[], Awaitable[T]]
    ) -> T: ...

    async def call_in_flight(
        self, channel: Channel, job: Job, chat_id: str | None, make: Callable[[], Awaitable[T]]
    ) -> T: ...

    def retry_at_ms(self, error: DeliveryError, backoff: Backoff, attempts: int) -> int: ...

    def reschedule(
        self, jobs: Sequence[Job], at_ms: int, *, counts: bool = False
    ) -> list[Reschedule]: ...

    def release(self, jobs: Sequence[Job]) -> list[Reschedule]: ...


@value_object
class Outcome:
    """What follows from an attempt.

    Of one that is not final, `retry_at_ms` is when to try again, in Unix milliseconds; None means as soon as
    the channel may make calls. `counts` is whether it took up an attempt, `rate_limited` whether the platform
    asked to wait, or answers nobody.
    """

    status: Status
    retry_at_ms: int | None = None
    counts: bool = False
    rate_limited: bool = False

    @property
    def is_final(self) -> bool:
        return self.status not in {"retry", "held"}

    def reschedule(self, gate: AttemptGate, jobs: Sequence[Job]) -> list[Reschedule]:
        """Puts back the attempt's job, and those of the same chat behind it, to be tried again."""
        if self.retry_at_ms is None:
            # All of the lane waits, so they need not wait for themselves.
            back = gate.release(jobs)
        else:
            back = gate.reschedule(jobs, self.retry_at_ms, counts=self.counts)
        return as_rate_limited(back) if self.rate_limited else back


DELIVERED, REJECTED, UNKNOWN = Outcome("delivered"), Outcome("rejected"), Outcome("unknown")

#: No call was made, as the bot may make none.
HELD = Outcome("held")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long something is tried. `max_wait_ms` limits how long a platform may ask to wait, counted from its
    first refusal; None where something else ends it."""

    backoff: Backoff
    max_attempts: int
    max_wait_ms: int | None = None


class SendAttempt:
    """An attempt: `make` calls the platform, `outcome` says what follows.

    `job` identifies the call to the gate. `attempts` counts this one, from 1, and leaves out those that the
    platform asked to repeat later; `calls` has those too. `rate_limited_since_ms` is since when it has asked,
    in Unix milliseconds. `was_in_doubt` is whether an earlier attempt may have reached the person.
    """

    __slots__ = (
        "attempts",
        "calls",
        "delay_ms",
        "failure",
        "job",
        "message_ref",
        "rate_limited_since_ms",
        "was_in_doubt",
    )

    def __init__(
        self,
        job: Job,
        *,
        attempts: int,
        calls: int | None = None,
        rate_limited_since_ms: int | None = None,
        was_in_doubt: bool = False,
    ) -> None:
        self.job = job
        self.attempts = attempts
        self.calls = attempts if calls is None else calls
        self.rate_limited_since_ms = rate_limited_since_ms
        self.was_in_doubt = was_in_doubt
        #: The platform's reference of what was sent.
        self.message_ref: str | None = None
        self.failure: DeliveryError | None = None
        #: In how many milliseconds to try, no call having been made: 0 while the bot may make none. None if
        #: one was made.
        self.delay_ms: int | None = None

    @classmethod
    def of_job(cls, job: Job) -> "SendAttempt":
        """The attempt of a job that makes one call."""
        return cls(job, attempts=job.attempts, rate_limited_since_ms=job.refused_from_ms)

    @property
    def trace_id(self) -> str | None:
        """The trace of the job's run if it is recorded."""
        span = self.job.span
        return span.trace_id if span is not None and span.is_sampled else None

    @property
    def in_doubt(self) -> bool:
        """Whether an earlier attempt may have shown it to the person, or this one."""
        return self.was_in_doubt or (self.failure is not None and self.failure.in_doubt)

    async def make(
        self,
        gate: AttemptGate,
        channel: Channel,
        chat_id: str | None,
        call: Callable[[], Awaitable[str | None]],
        *,
        in_flight: bool = False,
        patience_s: float | None = PATIENCE_S,
    ) -> None:
        """Makes the call when the bot's and the chat's turn has come; records what it raises.

        `in_flight` says that the caller has a slot for it. `patience_s` is how long to wait for the chat's
        turn; None where the caller has checked.
        """
        if patience_s is not None and chat_id is not None:
            delay_s = gate.chat_delay_s(chat_id, patience_s)
            if delay_s is not None:
                self.delay_ms = ceil(delay_s * 1000)
                return
        through_gate = gate.call_in_flight if in_flight else gate.call
        try:
            with within(self.job.span):
                message_ref = await through_gate(channel, self.job, chat_id, call)
            # Whatever a platform sends, what was done can be written down.
            self.message_ref = None if message_ref is None else storable(message_ref)
        except ChannelPaused:
            self.delay_ms = 0
        except DeliveryError as error:
            self.failure = error
        except Exception as error:
            # The edge to a channel's code, which must not stop the lane of all.
            log.exception("channel_broke_contract", channel=channel.key)
            self.failure = DeliveryError(Reason.UNKNOWN, type(error).__name__)

    def outcome(
        self, gate: AttemptGate, policy: RetryPolicy, now_ms: int, *, repeatable: bool
    ) -> Outcome:
        """What follows, as the gate is now: if it has closed since, what was refused goes back to its place.

        What may have arrived is tried again only where that is `repeatable`: the platform drops repeats, or a
        second time does no harm (docs/decisions/0007-crash-during-delivery.md).
        """
        if self.delay_ms is not None:
            return HELD if self.delay_ms == 0 else Outcome("held", now_ms + self.delay_ms)
        failure = self.failure
        if failure is None:
            return DELIVERED
        if failure.in_doubt and not repeatable:
            return UNKNOWN
        waits = failure.only_waits
        if self._is_over(failure, policy, now_ms):
            return UNKNOWN if self.in_doubt else REJECTED
        if waits and gate.closed:
            return Outcome("retry", rate_limited=True)
        # A refusal that names no time takes up no attempt, but the next wait is longer all the same.
        calls = self.calls if waits else self.attempts
        at_ms = gate.retry_at_ms(failure, policy.backoff, calls)
        return Outcome("retry", at_ms, counts=not waits, rate_limited=waits)

    def _is_over(self, failure: DeliveryError, policy: RetryPolicy, now_ms: int) -> bool:
        """Whether what failed so is not tried again."""
        if isinstance(failure, LimitReached | WaitedTooLong):
            return True
        if not failure.only_waits:
            return not failure.reason.retryable or self.attempts >= policy.max_attempts
        if policy.max_wait_ms is None:
            return False
        # Since the first time: it may have waited for a stopped bot, or a service that was down.
        since_ms = self.rate_limited_since_ms
        return now_ms - (now_ms if since_ms is None else since_ms) >= policy.max_wait_ms


async def run_by_chat(
    ctx: JobContext,
    chats: Iterable[Sequence[Job]],
    run_first: Callable[[Sequence[Job]], Awaitable[list[Reschedule]]],
) -> None:
    """Runs chats side by side, the jobs of one in their order.

    `run_first` does the first of a chat's jobs; what it returns puts that one and those after it back.
    """
    # All chats are awaited even if one fails: a call that went on beside the retry of its own job would be
    # made twice.
    results = await asyncio.gather(
        *(_run_chat(ctx, jobs, run_first) for jobs in chats), return_exceptions=True
    )
    for failure in results:
        if failure is not None:
            raise failure


async def _run_chat(
    ctx: JobContext,
    jobs: Sequence[Job],
    run_first: Callable[[Sequence[Job]], Awaitable[list[Reschedule]]],
) -> None:
    for number in range(len(jobs)):
        with within(jobs[number].span):
            back = await run_first(jobs[number:])
        if back:
            async with ctx.putting_back(back):
                return
