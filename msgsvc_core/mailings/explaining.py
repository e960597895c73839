"""Why a mailing, such as a broadcast, is where it is, in words: for `msgsvc explain`."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from msgsvc_core.channels import Channels
from msgsvc_core.channels.health.explanation import JobExplainer, WaitingJobs
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.explaining import MessageExplainer
from msgsvc_core.projects import Projects
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.telemetry.explanations import (
    Explainer,
    Explanation,
    Fact,
    FollowEvents,
    TimelineEntry,
    moment,
    moment_from,
)

#: A mailing of any project. Raises `NotFound`.
FindMailing = Callable[[Tx, str], Awaitable[Mailing]]


class MailingExplainer:
    """Explains mailings of any project."""

    def __init__(self, *, clock: Clock, find: FindMailing) -> None:
        self._clock = clock
        self._find = find

    async def explain(self, tx: Tx, job_id: str) -> Explanation | None:
        try:
            mailing = await self._find(tx, job_id)
        except NotFound:
            return None
        facts: dict[str, Fact] = {
            "job_id": mailing.job_id,
            "project_id": mailing.project_id,
            "source": mailing.source,
            "status": mailing.status,
            "total": mailing.total,
            "sent": mailing.sent,
            "failed": mailing.failed,
            "unknown": mailing.unknown,
            "skipped": mailing.skipped,
            "per_minute": mailing.per_minute,
            "permission": mailing.permission,
            "error": mailing.error,
        }
        return Explanation(self._summary(mailing), facts, _timeline(mailing))

    def _summary(self, mailing: Mailing) -> str:
        now_ms = self._clock.now_ms()
        done = f"{mailing.done:,} of {mailing.total:,} recipients have an outcome"
        match mailing.status:
            case "scheduled" if mailing.send_at_ms is not None and mailing.send_at_ms > now_ms:
                return f"Waiting: it starts at {moment_from(mailing.send_at_ms, now_ms)}."
            case "scheduled":
                return "Waiting: it is due, and starts when a process that runs jobs takes it."
            case "paused":
                why = mailing.error or "it was paused by a request"
                return f"Paused: {why}; {done}."
            case "running":
                pace = f", at most {mailing.per_minute:,} a minute" if mailing.per_minute else ""
                listing = "" if mailing.expanded_to is None else "; its recipients are being listed"
                return f"Running: {done}{pace}{listing}."
        ended = moment(mailing.finished_at_ms or mailing.created_at_ms)
        counts = f"{mailing.sent:,} sent, {mailing.failed:,} failed, {mailing.skipped:,} skipped"
        if mailing.status == "cancelled":
            return f"Cancelled at {ended}: {counts}."
        return f"Completed at {ended}: {counts}."


def _timeline(mailing: Mailing) -> list[TimelineEntry]:
    moments = (
        (mailing.created_at_ms, "accepted"),
        (mailing.send_at_ms, "scheduled to start"),
        (mailing.started_at_ms, "started"),
        (mailing.finished_at_ms, mailing.status),
        (mailing.expires_at_ms, "what is not sent expires"),
        (mailing.purged_at_ms, "its list of recipients was deleted"),
    )
    return [TimelineEntry(at_ms, text) for at_ms, text in moments if at_ms is not None]


def core_explainers(
    *,
    clock: Clock,
    settings: Settings,
    events: Events,
    projects: Projects,
    channels: Channels,
    states: ChannelStates,
    subscribers: Subscribers,
    mailings: Mailings,
    known_jobs: Callable[[], Collection[str]],
    follow_events: Sequence[FollowEvents],
) -> list[Explainer]:
    """Explains the ids of messages, mailings and jobs. Mailings come first: their ids are those of jobs."""
    waiting = WaitingJobs(clock=clock, channels=channels, states=states, known=known_jobs)
    messages = MessageExplainer(
        clock=clock,
        projects=projects,
        subscribers=subscribers,
        channels=channels,
        events=events,
        waiting=waiting,
        max_attempts=settings.limits.delivery_attempts,
        follow_events=follow_events,
    )
    return [
        Explainer("msg", messages.explain),
        Explainer("job", MailingExplainer(clock=clock, find=mailings.find_any).explain),
        Explainer("job", JobExplainer(clock=clock, waiting=waiting).explain),
    ]
