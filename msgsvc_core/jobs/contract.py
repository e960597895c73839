"""Job types, for writing jobs. See docs/architecture.md, "A job"."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from msgsvc_core.kernel.tracing import Span
from msgsvc_core.kernel.values import value_object

if TYPE_CHECKING:
    from msgsvc_core.db import Tx

#: Priorities within a lane, lower first (design: a sign-in never waits behind a broadcast).
URGENT, NORMAL, BULK = 0, 50, 90


@value_object
class NewJob:
    """A job to be enqueued.

    `lane` is `default`, or a lane whose prefix a `LaneSpec` declares, e.g. `webhook:whe_1`.
    `key` makes it unique while it is open: a second job of that name and key is not added.
    `traceparent` is the span that causes it, the current one if None; with `traced=False` it belongs to no
    trace: for a job that enqueues its own next run.
    """

    name: str
    payload: dict[str, Any] = field(default_factory=dict)
    lane: str = "default"
    priority: int = NORMAL
    run_at_ms: int | None = None
    key: str | None = None
    project_id: str | None = None
    traceparent: str | None = None
    traced: bool = True


@value_object
class Job:
    """A claimed job. `attempts` counts this one, from 1; `deliveries` counts claims, including those that
    ended in a crash.

    `run_at_ms` is when it was due; later than `created_at_ms` if it was delayed or rescheduled.
    `refused_from_ms` is the first time that a platform rate-limited it; None if it never was.
    `traceparent` is the span that caused it, and `span` that of its run; None without tracing.
    """

    job_id: str
    name: str
    lane: str
    payload: dict[str, Any]
    attempts: int
    deliveries: int
    created_at_ms: int
    project_id: str | None
    priority: int = NORMAL
    run_at_ms: int = 0
    refused_from_ms: int | None = None
    traceparent: str | None = None
    span: Span | None = None

    @property
    def is_suspect(self) -> bool:
        """Whether several runners crashed during the job."""
        return self.deliveries > self.attempts + 1


@value_object
class Reschedule:
    """Reschedules a job: until `at_ms` (Unix milliseconds) or, for None, to its old position, as if it had
    never been claimed. `counts` is whether this was an attempt, `refused` whether a platform rate-limited
    it."""

    job: Job
    at_ms: int | None
    counts: bool = False
    refused: bool = False


def as_rate_limited(back: "Sequence[Reschedule]") -> list[Reschedule]:
    """The same reschedules, of jobs of one recipient, the first of which a platform rate-limited."""
    return [replace(back[0], refused=True), *back[1:]]


class Retry(Exception):
    """Raised by a handler: run this job again after `after_s` seconds.

    `counts=False` keeps the attempt from being counted, e.g. when a platform asked us to wait.
    """

    def __init__(self, after_s: float, why: str = "", *, counts: bool = True) -> None:
        super().__init__(why or f"again in {after_s} s")
        self.after_s = after_s
        self.counts = counts


class Stopping(Exception):
    """Raised by a handler that ends early because of `ctx.stopping`: jobs that it has not completed return
    to the queue as if they had never been claimed."""


class LeaseLost(Exception):
    """The job's lease has expired and another runner has the job; its effect must not be committed."""


class JobContext(Protocol):
    """What a handler works with.

    A handler that returns without `completing` a job has it completed by the runner.
    """

    @property
    def stopping(self) -> bool:
        """Whether the runner is shutting down. A handler with a long batch should complete what it has
        started and raise `Stopping`: the rest runs elsewhere without delay."""
        ...

    def transaction(self) -> "AbstractAsyncContextManager[Tx]":
        """A transaction independent of the jobs, for work that may be repeated."""
        ...

    def statement(self) -> "AbstractAsyncContextManager[Tx]":
        """A transaction independent of the jobs, of one statement: see `Database.transaction`."""
        ...

    def reading(self) -> "AbstractAsyncContextManager[Tx]":
        """A reading connection."""
        ...

    def holding(self, *jobs: Job) -> "AbstractAsyncContextManager[Tx]":
        """A transaction in which this runner keeps its leases on `jobs` until it ends.

        For a handler that records what it is about to do. Raises `LeaseLost` if another runner has taken over
        one of them.
        """
        ...

    async def progressed(self, tx: "Tx", *jobs: Job) -> None:
        """Records, in a `holding` transaction, that a part of `jobs` is done: this resets their count of
        crashes, so that only jobs without any progress are considered the cause of crashes."""
        ...

    def completing(
        self, *jobs: Job, first: "Callable[[Tx], Awaitable[object]] | None" = None
    ) -> "AbstractAsyncContextManager[Tx]":
        """A transaction that deletes `jobs` together with everything else written in it.

        `first` is awaited before they are deleted: it locks rows that others lock when they enqueue a job
        with the same key. Otherwise they would wait for the deletion, and this for the rows, a deadlock.

        Raises `LeaseLost`, and rolls back, if another runner has taken over one of them.
        """
        ...

    def rescheduling(
        self, job: Job, *, after_s: float, counts: bool = True
    ) -> "AbstractAsyncContextManager[Tx]":
        """A transaction that reschedules `job` together with everything else written in it."""
        ...

    def putting_back(self, back: Sequence[Reschedule]) -> "AbstractAsyncContextManager[Tx]":
        """Reschedules several jobs in one transaction.

        Raises `LeaseLost`, and rolls back, if another runner has taken over one of them.
        """
        ...

    def settling(
        self, done: Sequence[Job], back: Sequence[Reschedule] = ()
    ) -> "AbstractAsyncContextManager[Tx]":
        """A transaction that deletes jobs and reschedules others, for outcomes that are written together.

        They may belong to other batches of this runner: call `forget` there. Raises `LeaseLost`, and rolls
        back, if another runner has taken over one of them.
        """
        ...

    async def shrink_file(self, *, above: int = 0) -> None:
        """Cuts a SQLite file shorter, in steps, if more than `above` of its pages are free beside those that
        the next rows will fill. On PostgreSQL it does nothing.

        Raises `Stopping` when the runner is shutting down.
        """
        ...

    def forget(self, *jobs: Job) -> None:
        """Removes jobs of this batch that were settled through the context of another batch."""
        ...


Handler = Callable[[JobContext, Sequence[Job]], Awaitable[None]]
Backoff = Callable[[int], float]
OnDead = Callable[["Tx", Job, str], Awaitable[None]]
OnRetry = Callable[["Tx", Job], Awaitable[None]]
OnWithdrawn = Callable[["Tx", Job], Awaitable[None]]


def exponential(first_s: float = 1.0, factor: float = 2.0, max_s: float = 3600.0) -> Backoff:
    """Seconds to wait after the n-th failed attempt: `first_s`, then `factor` times more for each attempt."""

    def wait(attempts: int) -> float:
        return min(max_s, first_s * factor ** min(attempts - 1, 64))

    return wait


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Declares a kind of job (hook `register_jobs`).

    `handler` gets up to `LaneSpec.batch` jobs of one lane, usually one. An exception is a failed attempt of
    every job of the batch that is not completed yet; after `max_attempts` a job becomes a dead letter.
    `every_s` makes it recur: exactly one such job always exists, without payload.

    `on_dead` is awaited with the transaction that makes a job a dead letter, the job and its last error, to
    update what depends on the job. If it raises, its writes are undone and the job still becomes a dead
    letter. It is also awaited when an operator discards a job that is not a dead letter; if it raises then,
    the job stays.

    `on_retry` is awaited with the transaction in which an operator reruns a dead letter, and the job, to
    revert what `on_dead` did: otherwise the job would find nothing to do. It refuses by an `ApiError` whose
    message says why and what to do instead. A kind with `on_dead` and without `on_retry` cannot be rerun.

    `sends` says in a few words what reaches people or other hosts by it, for `msgsvc outbox`; empty if
    nothing does. `on_withdrawn` is awaited with the transaction in which an operator withdraws a job that the
    original of a restored copy may have done, and the job: it settles what depends on it as in doubt.

    `replaces` names recurring jobs of earlier releases whose work it does: they are removed at a start.

    `inline` means that its transactions touch few rows; see `Database.transaction`. `own_trace` means that
    each run is a trace of its own, which links to its cause: for jobs that call for very many.
    """

    name: str
    handler: Handler
    max_attempts: int = 10
    backoff: Backoff = field(default_factory=exponential)
    jitter: float = 0.1
    every_s: float | None = None
    on_dead: OnDead | None = None
    on_retry: OnRetry | None = None
    inline: bool = False
    own_trace: bool = False
    sends: str = ""
    on_withdrawn: OnWithdrawn | None = None
    replaces: tuple[str, ...] = ()


@value_object
class Capacity:
    """How many jobs of a lane may be claimed now, and how many batches may run concurrently.

    `next_check_ms` is when capacity may increase, in Unix milliseconds. `batch` is the maximum number of jobs
    in a batch; None for the lane spec's.
    """

    jobs: int
    batches: int
    next_check_ms: int
    batch: int | None = None


class Gate(Protocol):
    """Limits the rate at which one runner claims a lane's jobs."""

    def capacity(self) -> Capacity:
        """The current capacity. Called often, so it must not query the database."""
        ...

    @property
    def needs_refresh(self) -> bool:
        """Whether `refresh` must be called even if there is no capacity."""
        ...

    async def refresh(self, tx: "Tx", *, acquired: bool) -> Capacity:
        """Returns the capacity according to the database. Called for exclusive lanes, before each claim
        and in its transaction. `acquired` means that this runner has just acquired the lane: another may
        have worked on it until now."""
        ...

    def claimed(self, jobs: Sequence[Job]) -> None:
        """These jobs were claimed, and are passed to their handlers now."""
        ...

    def put_back(self, job: Job, until_ms: int) -> None:
        """The handler of a job failed; the job is rescheduled until then, in Unix milliseconds."""
        ...

    def ended(self, jobs: Sequence[Job]) -> None:
        """The handlers of these jobs have ended, with any outcome."""
        ...


@dataclass(frozen=True, slots=True)
class LaneSpec:
    """Declares the lanes whose name is `prefix` or starts with `prefix:` (hook `register_lanes`).

    `concurrency` is the number of batches of a lane that one runner works on concurrently, `batch` the
    maximum number of jobs in a batch. An `exclusive` lane is drained by one runner at a time, across all
    machines. `gate` builds the lane's gate from its name.
    """

    prefix: str
    concurrency: int = 1
    batch: int = 1
    exclusive: bool = False
    gate: Callable[[str], Gate] | None = None
