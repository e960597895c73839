"""Codes by a route: the same code on one channel after another, until it is given.

A step goes on after its time, and at once after a failure, by a job of its own. One conditional UPDATE moves
the code to its next step, in the transaction that queues the message and the next job: a worker that is
killed neither skips a step nor does one twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, NewJob
from msgsvc_core.jobs.queue import JobQueue
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError, Conflict, SubscriberNotFound, ValidationFailed
from msgsvc_core.kernel.values import value_object
from msgsvc_core.routing.models import Candidate, read_steps, steps_to_column
from msgsvc_core.routing.progress import deadline_ms
from msgsvc_core.routing.service import Routes
from msgsvc_core.security import SecretBox
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import DecryptionError
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp import limits, store
from msgsvc_otp.models import OneTimeCode, SendOtpBody
from msgsvc_otp.sending import CodeSender

#: The job that sends a code by the next step of its route.
STEP = "otp.step"

#: Where a code is kept while a step may follow.
SEALED = SealedColumn(
    table="otp_codes",
    column="sealed",
    key=("project_id", "otp_id"),
    bound_to=("otp_id",),
    holds="{count} one-time code(s) that are being sent by a route",
    if_lost="nothing: they are not sent on further channels, and people ask for new ones",
    is_lasting=False,
)

log = structlog.get_logger(__name__)


@value_object
class Plan:
    """How a code goes to a person: the request with its route, all their subscribers, and the steps that
    reach them now."""

    request: OneTimeCode
    people: list[str]
    candidates: tuple[Candidate, ...]


class CodeRoutes:
    """Sends codes by routes; `sender` sends them by one channel."""

    def __init__(
        self,
        *,
        clock: Clock,
        secrets: SecretBox,
        jobs: JobQueue,
        routes: Routes,
        subscribers: Subscribers,
        sender: CodeSender,
    ) -> None:
        self._clock = clock
        self._secrets = secrets
        self._jobs = jobs
        self._routes = routes
        self._subscribers = subscribers
        self.sender = sender

    def specs(self) -> list[JobSpec]:
        return [
            JobSpec(
                STEP,
                self.run,
                sends="further steps of one-time codes by a route",
                on_withdrawn=self.withdraw,
            )
        ]

    async def plan(self, tx: Tx, request: OneTimeCode, body: SendOtpBody) -> Plan:
        """How the code of a request reaches the person, whose subscribers and codes are locked from now on.

        Raises `NotFound` for an unknown route, the errors of an unknown subscriber, and `Conflict` if no step
        reaches them now.
        """
        assert body.route_id is not None
        project_id = request.project_id
        route = await self._routes.get(tx, project_id, body.route_id)
        everywhere = await self._subscribers.list_recipients(
            project_id, subscriber_id=body.subscriber_id, external_id=body.external_id, tx=tx
        )
        people = sorted(each.subscriber_id for each in everywhere)
        known = await limits.lock_people(tx, self._subscribers, project_id, people)
        if not known:
            raise SubscriberNotFound(
                "there is no subscriber {subscriber_id!r}", subscriber_id=people[0]
            )
        choice = await self._routes.chooser.choose(
            project_id,
            route.steps,
            subscriber_id=known[0],
            now_ms=self._clock.now_ms(),
            for_code=True,
            tx=tx,
        )
        candidates = _of(known, choice.candidates)
        if not candidates:
            reasons = (f"{each.channel} ({each.reason})" for each in choice.skipped)
            raise Conflict(
                "no step of the route reaches this person now: {reasons}",
                field="route_id",
                reasons=", ".join(reasons),
            )
        column = steps_to_column(route.steps)
        planned = replace(request, route_id=route.route_id, steps=column, step=-1)
        return Plan(planned, known, candidates)

    def seal(self, otp_id: str, code: str) -> str:
        """A code, encrypted for its row."""
        return self._secrets.encrypt(code, (SEALED.name, otp_id))

    async def start(self, tx: Tx, issued: OneTimeCode, plan: Plan, code: str) -> OneTimeCode:
        """Sends a code by the first step that takes it.

        Raises `ValidationFailed` if no channel can carry its message, and `Conflict` if the bots are gone.
        """
        await store.insert_recipients(tx, issued, plan.people)
        sent = await self._send_by_first(tx, issued, plan.candidates, code)
        assert sent is not None, "the code was issued in this transaction"
        return sent

    async def go_on(
        self, tx: Tx, project_id: str, otp_id: str, step: int, *, reason: str | None = None
    ) -> None:
        """The next step follows at once, after the commit. `reason` is why this one failed."""
        payload = {"project_id": project_id, "otp_id": otp_id, "step": step, "reason": reason}
        await self._jobs.enqueue(tx, NewJob(STEP, payload, project_id=project_id))

    async def run(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """A step's time is over, or it failed."""
        for job in jobs:
            async with ctx.completing(job) as tx:
                await self._advance(tx, job.payload)

    async def withdraw(self, tx: Tx, job: Job) -> None:
        """The original of a restored copy may have sent the code on: no further step follows."""
        payload = job.payload
        known = await store.find(tx, payload["project_id"], payload["otp_id"])
        if known is not None and known.step == payload["step"]:
            await store.forget_secret(tx, known)

    async def _advance(self, tx: Tx, payload: Mapping[str, Any]) -> None:
        project_id, otp_id, step = payload["project_id"], payload["otp_id"], payload["step"]
        known = await store.find(tx, project_id, otp_id)
        if known is None or known.step != step:
            return
        people = await store.list_people(tx, known)
        await limits.lock_people(tx, self._subscribers, project_id, people)
        code = await store.find(tx, project_id, otp_id)
        if code is None or code.step != step:
            return
        reason = payload.get("reason")
        if not await self._send_next(tx, code, people):
            await store.forget_secret(tx, code)
            if reason is not None:
                await store.mark_failed(tx, project_id, otp_id, reason)

    async def _send_next(self, tx: Tx, code: OneTimeCode, people: Sequence[str]) -> bool:
        """Whether the code is sent by a further step."""
        now_ms = self._clock.now_ms()
        if code.sealed is None or code.steps is None or not code.is_live(now_ms):
            return False
        try:
            secret = self._secrets.decrypt(code.sealed, (SEALED.name, code.otp_id))
        except DecryptionError:
            log.error("otp_unreadable", otp_id=code.otp_id)
            return False
        assert code.step is not None
        choice = await self._routes.chooser.choose(
            code.project_id,
            read_steps(code.steps),
            subscriber_id=code.subscriber_id,
            now_ms=now_ms,
            for_code=True,
            first=code.step + 1,
            tx=tx,
        )
        candidates = _of(people, choice.candidates)
        try:
            return await self._send_by_first(tx, code, candidates, secret) is not None
        except (Conflict, ValidationFailed):
            # Logged with each step.
            return False

    async def _send_by_first(
        self, tx: Tx, code: OneTimeCode, candidates: Sequence[Candidate], secret: str
    ) -> OneTimeCode | None:
        """Sends a code by the first of the steps that takes it; None if it is over, or there are none.

        Raises what the last of them raised, if none takes it.
        """
        failure: ApiError | None = None
        for candidate in candidates:
            try:
                async with tx.savepoint():
                    return await self._send(tx, code, candidate, secret)
            except (Conflict, ValidationFailed) as error:
                failure = error
                log.warning(
                    "otp_step_not_sent",
                    otp_id=code.otp_id,
                    channel=candidate.channel.name,
                    code=error.code,
                    error=error.message,
                )
        if failure is not None:
            raise failure
        return None

    async def _send(
        self, tx: Tx, code: OneTimeCode, candidate: Candidate, secret: str
    ) -> OneTimeCode | None:
        assert code.steps is not None
        steps, now_ms = read_steps(code.steps), self._clock.now_ms()
        is_last = candidate.step == len(steps) - 1
        moved = await store.move(
            tx,
            code,
            step=candidate.step,
            subscriber_id=candidate.recipient.subscriber_id,
            is_last=is_last,
            now_ms=now_ms,
        )
        if moved is None:
            return None
        assert moved.subscriber_id is not None
        subscriber = await self._subscribers.get(tx, moved.project_id, moved.subscriber_id)
        await self.sender.send(tx, moved, subscriber, secret)
        if not is_last:
            # Without a time of its own the job only deletes what is kept of the code.
            left_ms, ends_ms = deadline_ms(steps, candidate.step, now_ms), moved.expires_at_ms
            run_at_ms = ends_ms if left_ms is None else min(left_ms, ends_ms)
            payload = {
                "project_id": moved.project_id,
                "otp_id": moved.otp_id,
                "step": candidate.step,
            }
            job = NewJob(STEP, payload, run_at_ms=run_at_ms, project_id=moved.project_id)
            await self._jobs.enqueue(tx, job)
        return moved


def _of(people: Sequence[str], candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that were the person's when the code was asked for, and are locked."""
    return tuple(each for each in candidates if each.recipient.subscriber_id in people)
