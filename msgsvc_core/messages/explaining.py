"""Why a message is where it is, in words: for `msgsvc explain`."""

from collections.abc import Sequence

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.explanation import WaitingJobs, dead_letter, timeline_of
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.events import Event, Events
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.inspection import JobView
from msgsvc_core.kernel.clock import Clock, optional_rfc3339
from msgsvc_core.kernel.ids import creation_ms
from msgsvc_core.messages import edits, route_store, store
from msgsvc_core.messages.deliveries import why_skipped
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.models import Message
from msgsvc_core.projects.models import Project
from msgsvc_core.projects.service import Projects
from msgsvc_core.routing.progress import Obstacle
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.telemetry.explanations import (
    Explanation,
    Fact,
    FollowEvents,
    TimelineEntry,
    moment,
)

#: Milliseconds after a message's id within which its job's id was made: they are written together, in a batch
#: of 500 after a while.
SAME_WRITE_MS = 60_000

#: Milliseconds around the end of a message within which its event's id was made, by another process's clock.
SAME_END_MS = 10_000


class MessageExplainer:
    """Explains messages of any project. `follow_events` are plugins' additions to the timeline."""

    def __init__(
        self,
        *,
        clock: Clock,
        projects: Projects,
        subscribers: Subscribers,
        channels: Channels,
        events: Events,
        waiting: WaitingJobs,
        max_attempts: int,
        follow_events: Sequence[FollowEvents] = (),
    ) -> None:
        self._clock = clock
        self._projects = projects
        self._subscribers = subscribers
        self._channels = channels
        self._events = events
        self._waiting = waiting
        self._max_attempts = max_attempts
        self._follow_events = follow_events

    async def explain(self, tx: Tx, message_id: str) -> Explanation | None:
        projects = {each.project_id: each for each in await self._projects.list_all(tx)}
        found = await store.find_many(tx, [(project_id, message_id) for project_id in projects])
        if not found:
            return None
        message = found[0]
        channel = await self._channels.find(message.bot)
        recipient = (message.project_id, message.subscriber_id)
        subscriber = (await self._subscribers.get_many(tx, [recipient])).get(recipient)
        jobs = await self._jobs(tx, message)
        told = await self._told(tx, message)
        summary = await self._summary(tx, message, subscriber, channel, jobs)
        facts = self._facts(message, projects[message.project_id], subscriber, channel)
        (message,) = await route_store.with_past_steps(tx, [message])
        timeline = [*_timeline(message), *told]
        if message.status in {"queued", "sending"}:
            timeline += await self._waiting.channel_timeline(tx, message.bot)
        for job in jobs:
            facts |= await self._waiting.facts(tx, job)
            timeline += timeline_of(job)
        return Explanation(summary, facts, timeline)

    async def _jobs(self, tx: Tx, message: Message) -> list[JobView]:
        """The jobs that are there for a message: of its delivery, or of edits and its deletion."""
        if message.route_id is not None and message.status in {"queued", "sending"}:
            # At a later step of its route, long after the message.
            lane = lane_of(message.bot)
            return await inspection.list_mentioning(tx, message.message_id, lane=lane, name=JOB)
        if message.job_id is None and message.status != "sent":
            found = await inspection.list_enqueued_with(
                tx, message.message_id, within_ms=SAME_WRITE_MS
            )
            return [job for job in found if job.name == JOB]
        if message.status == "sent" and message.deleted_at_ms is None:
            lane = lane_of(message.bot)
            return await inspection.list_mentioning(
                tx, message.message_id, lane=lane, name=edits.JOB
            )
        return []

    async def _told(self, tx: Tx, message: Message) -> list[TimelineEntry]:
        """The events of a message that ended, and who received them."""
        if message.finished_at_ms is None:
            return []
        ended_ms = creation_ms(message.message_id) + message.finished_at_ms - message.created_at_ms
        found = await self._events.mentioning(
            tx,
            message.project_id,
            message.message_id,
            since_ms=ended_ms - SAME_END_MS,
            until_ms=ended_ms + SAME_END_MS,
        )
        events = [event for event in found if _is_outcome(event)]
        told = [
            TimelineEntry(event.occurred_at_ms, f"event {event.name}, {event.event_id}")
            for event in events
        ]
        if events:
            ids = [event.event_id for event in events]
            for follow in self._follow_events:
                told += await follow(tx, message.project_id, ids)
        return told

    async def _summary(
        self,
        tx: Tx,
        message: Message,
        subscriber: Subscriber | None,
        channel: Channel | None,
        jobs: Sequence[JobView],
    ) -> str:
        if message.waits_for is not None:
            return (
                f"Sent on {message.channel}, and waits there until it is {message.waits_for}: its route"
                " ends then, or goes on when the time of the step is over."
            )
        match message.status:
            case "queued":
                now_ms = self._clock.now_ms()
                skipped = why_skipped(message, subscriber, channel, now_ms)
                return await self._queued(tx, message, skipped, jobs)
            case "sending":
                return await self._sending(tx, message, channel, jobs)
            case "sent":
                return await self._sent(tx, message, channel, jobs)
        return _ended(message, jobs)

    async def _queued(
        self, tx: Tx, message: Message, skipped: Obstacle | None, jobs: Sequence[JobView]
    ) -> str:
        if not jobs:
            return (
                "Not moving: its delivery job is gone, so nothing will send it. Send a new message."
            )
        if jobs[0].state == "dead":
            return f"Not moving: its delivery job {dead_letter(jobs[0])}."
        reason = await self._waiting.reason(tx, jobs[0])
        if skipped is not None:
            return f"Will be skipped: {skipped.text}. Until then it waits: {reason}."
        # That of the platform; the job has that of the service.
        error = f" The last attempt failed: {message.error}." if message.error else ""
        return f"Waiting: {reason}.{error}"

    async def _sending(
        self, tx: Tx, message: Message, channel: Channel | None, jobs: Sequence[JobView]
    ) -> str:
        if not jobs:
            return "In doubt: it was being sent, and its delivery job is gone."
        reason = await self._waiting.reason(tx, jobs[0])
        until_ms = jobs[0].leased_until_ms
        if jobs[0].state == "running" and until_ms is not None and until_ms > self._clock.now_ms():
            return f"Being sent: {reason}, attempt {message.attempts}."
        repeatable = channel is not None and channel.capabilities.repeatable
        then = (
            "it is sent again with the same key, which the platform recognises"
            if repeatable
            else "it ends as `unknown`, and is not sent again"
        )
        return f"In doubt: {reason}. Then {then}."

    async def _sent(
        self, tx: Tx, message: Message, channel: Channel | None, jobs: Sequence[JobView]
    ) -> str:
        name = message.channel if channel is None else channel.name
        sent = f"Sent at {moment(message.finished_at_ms or message.created_at_ms)} on {name}"
        calls = "" if message.attempts < 2 else f", at attempt {message.attempts}"
        if message.deleted_at_ms is not None:
            return f"{sent}{calls}, and deleted at {moment(message.deleted_at_ms)}."
        parts = [f"{sent}{calls}."]
        if jobs:
            reason = await self._waiting.reason(tx, jobs[0])
            parts.append(f"A change waits: {reason}.")
        if message.error is not None:
            parts.append(f"The last change was refused: {message.error}.")
        return " ".join(parts)

    def _facts(
        self,
        message: Message,
        project: Project,
        subscriber: Subscriber | None,
        channel: Channel | None,
    ) -> dict[str, Fact]:
        return {
            "message_id": message.message_id,
            "project_id": project.project_id,
            "project": project.name,
            "project_status": project.status,
            "status": message.status,
            "reason": message.reason,
            "error": message.error,
            "channel": message.channel if channel is None else channel.name,
            "bot": message.bot,
            "subscriber_id": message.subscriber_id,
            "subscriber_status": None if subscriber is None else subscriber.status,
            "permission": message.permission,
            "attempts": message.attempts,
            "max_attempts": self._max_attempts,
            "expires_at": optional_rfc3339(message.expires_at_ms),
            "batch_id": message.batch_id,
            "mailing": message.job_id,
            "route_id": message.route_id,
            "waits_for": message.waits_for,
            "trace_id": message.trace_id,
        }


def _ended(message: Message, jobs: Sequence[JobView]) -> str:
    """The sentence of a message that was not sent."""
    at, error = (
        moment(message.finished_at_ms or message.created_at_ms),
        message.error or "no detail",
    )
    if message.status == "failed":
        dead = next((job for job in jobs if job.state == "dead"), None)
        calls = "without a call" if not message.attempts else f"at attempt {message.attempts}"
        job = "" if dead is None else f" Its delivery job {dead_letter(dead)}."
        return f"Failed at {at}, {calls}: {error} ({message.reason}).{job}"
    if message.status == "unknown":
        return (
            f"Unknown since {at}: nobody can tell whether the person got it ({error}). It is not sent again,"
            " so that nobody gets it twice."
        )
    if message.deleted_at_ms is not None:
        return f"Deleted at {moment(message.deleted_at_ms)}, before it was sent."
    return f"Skipped at {at}, without being sent: {error}."


def _timeline(message: Message) -> list[TimelineEntry]:
    moments = (
        (message.created_at_ms, "accepted" if message.job_id is None else "sent by its mailing"),
        (message.delivered_at_ms, "reported as delivered"),
        (message.read_at_ms, "reported as read"),
        (message.edited_at_ms, "edited"),
        (message.expires_at_ms, "expires, if it has not been sent"),
        (message.deleted_at_ms, "deleted"),
        (
            message.finished_at_ms,
            f"{message.status}{f': {message.error}' if message.error else ''}",
        ),
    )
    steps = [
        TimelineEntry(
            copy.finished_at_ms,
            f"{copy.channel}: {copy.status}{f' ({copy.reason})' if copy.reason else ''}",
        )
        for copy in message.past_steps
    ]
    entries = [TimelineEntry(at_ms, text) for at_ms, text in moments if at_ms is not None]
    return [*entries, *steps]


def _is_outcome(event: Event) -> bool:
    return event.name in {"delivery.success", "delivery.failed"}
