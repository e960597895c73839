"""Why a job has not run yet, in words: for `msgsvc explain`."""

from collections.abc import Callable, Collection

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.lanes import LANE, channel_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.db import Tx
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.inspection import JobView
from msgsvc_core.kernel.clock import Clock, optional_rfc3339, to_rfc3339
from msgsvc_core.telemetry.explanations import (
    Explanation,
    Fact,
    TimelineEntry,
    duration,
    moment,
    moment_from,
)

#: Up to how many jobs ahead of one are counted.
MOST_AHEAD = 100_000


class WaitingJobs:
    """Says what jobs wait for. `known` returns the names of the jobs that loaded plugins run."""

    def __init__(
        self,
        *,
        clock: Clock,
        channels: Channels,
        states: ChannelStates,
        known: Callable[[], Collection[str]],
    ) -> None:
        self._clock = clock
        self._channels = channels
        self._states = states
        self._known = known

    async def reason(self, tx: Tx, job: JobView) -> str:
        """Why a job that is no dead letter is not done, the main reason first: words that go on after
        "Waiting: "."""
        now_ms = self._clock.now_ms()
        if job.state == "running":
            return _running(job, now_ms)
        reasons = await self._obstacles(tx, job, now_ms)
        if job.run_at_ms > now_ms:
            reasons.append(_delayed(job, now_ms))
        elif not reasons:
            reasons.append(await self._in_line(tx, job, now_ms))
        return "; besides, ".join(reasons)

    async def facts(self, tx: Tx, job: JobView) -> dict[str, Fact]:
        """What is known of a job, and of the channel whose lane it is in."""
        facts: dict[str, Fact] = {
            "job_id": job.job_id,
            "job": job.name,
            "job_state": job.state,
            "lane": job.lane,
            "job_attempts": job.attempts,
            "due_at": to_rfc3339(job.run_at_ms),
            "leased_by": job.leased_by,
            "leased_until": optional_rfc3339(job.leased_until_ms),
            "last_error": job.last_error,
        }
        if job.trace_id is not None:
            facts["trace_id"] = job.trace_id
        channel = await self._channel_of(job.lane)
        if channel is not None:
            facts["pace"] = pace_of(channel)
        return facts

    async def channel_timeline(self, tx: Tx, channel_key: str) -> list[TimelineEntry]:
        """What has happened to a channel that keeps its jobs waiting now."""
        state = await self._states.find(tx, channel_key)
        if state is None:
            return []
        found = []
        if state.stopped:
            found.append(
                TimelineEntry(
                    state.changed_at_ms, f"the bot was stopped: {state.reason}, {state.detail}"
                )
            )
        if state.outage_since_ms is not None:
            found.append(
                TimelineEntry(
                    state.outage_since_ms, f"the platform became unavailable: {state.outage_detail}"
                )
            )
        if state.paused_until_ms > self._clock.now_ms():
            found.append(TimelineEntry(state.paused_until_ms, "the channel's pause ends"))
        return found

    async def _obstacles(self, tx: Tx, job: JobView, now_ms: int) -> list[str]:
        found = []
        if job.name not in self._known():
            found.append(f"no loaded plugin runs jobs named {job.name}")
        if job.lane.startswith(f"{LANE}:"):
            key = channel_of(job.lane)
            channel = await self._channels.find(key)
            state = await self._states.find(tx, key)
            # The gate of a removed channel is open: what is queued is skipped.
            if channel is not None and state is not None:
                found += channel_obstacles(channel, state, now_ms)
        if not await inspection.count_runners(tx, now_ms):
            found.append("no process runs jobs; start `msgsvc serve` or `msgsvc worker`")
        return found

    async def _in_line(self, tx: Tx, job: JobView, now_ms: int) -> str:
        ahead = await inspection.count_ahead(tx, job, now_ms, MOST_AHEAD)
        if not ahead:
            return "it is next in its lane, and is taken within a second or two"
        shown = f"{MOST_AHEAD:,} or more" if ahead >= MOST_AHEAD else f"{ahead:,}"
        line = f"{shown} job{'s are' if ahead > 1 else ' is'} ahead of it in the lane {job.lane}"
        channel = await self._channel_of(job.lane)
        per_s = None if channel is None else channel.pace.per_bot_s
        if per_s is None:
            return line
        wait_ms = round(ahead / per_s * 1000)
        return f"{line}, whose pace is {per_s:g} a second: about {_about(wait_ms)}"

    async def _channel_of(self, lane: str) -> Channel | None:
        if not lane.startswith(f"{LANE}:"):
            return None
        return await self._channels.find(channel_of(lane))


class JobExplainer:
    """Explains jobs of the queue."""

    def __init__(self, *, clock: Clock, waiting: WaitingJobs) -> None:
        self._clock = clock
        self._waiting = waiting

    async def explain(self, tx: Tx, job_id: str) -> Explanation | None:
        """None for a job that is done: it is not kept."""
        job = await inspection.find(tx, job_id)
        if job is None:
            return None
        facts = await self._waiting.facts(tx, job)
        timeline = [TimelineEntry(job.created_at_ms, "enqueued"), *timeline_of(job)]
        if job.lane.startswith(f"{LANE}:"):
            timeline += await self._waiting.channel_timeline(tx, channel_of(job.lane))
        return Explanation(await self._summary(tx, job), facts, timeline)

    async def _summary(self, tx: Tx, job: JobView) -> str:
        if job.state == "dead":
            return f"Dead: {job.name} {dead_letter(job)}."
        reason = await self._waiting.reason(tx, job)
        if job.state == "running":
            return f"Running: {reason}."
        return f"Waiting: {reason}."


def channel_obstacles(channel: Channel, state: ChannelState, now_ms: int) -> list[str]:
    """Why a channel makes no calls now, the most lasting reason first."""
    name, found = channel.name, []
    if state.stopped:
        since = moment_from(state.changed_at_ms, now_ms)
        found.append(
            f"the bot of channel {name} has been stopped since {since} because its platform refuses it"
            f" ({state.reason}: {state.detail})"
        )
    if state.outage_since_ms is not None:
        probe = (
            ""
            if state.outage_probe_at_ms is None
            else f"; the next check is at {moment_from(state.outage_probe_at_ms, now_ms)}"
        )
        found.append(
            f"the platform of channel {name} has not answered since"
            f" {moment_from(state.outage_since_ms, now_ms)} ({state.outage_detail}){probe}"
        )
    if state.paused_until_ms > now_ms:
        found.append(
            f"channel {name} is paused until {moment_from(state.paused_until_ms, now_ms)} because its"
            " platform asked the bot to wait (429)"
        )
    return found


def timeline_of(job: JobView) -> list[TimelineEntry]:
    """What has happened to a job since it was enqueued, and when it is to run."""
    found = []
    if job.refused_from_ms is not None:
        found.append(TimelineEntry(job.refused_from_ms, "the platform first asked to wait"))
    if job.state == "ready" and job.run_at_ms > job.created_at_ms:
        found.append(TimelineEntry(job.run_at_ms, "due"))
    return found


def dead_letter(job: JobView) -> str:
    """What became of a job that failed permanently, after its name."""
    error = (job.last_error or "no error was recorded").partition("\n")[0]
    return f"failed for good after {_times(job.attempts)} ({error}); see `msgsvc jobs show {job.job_id}`"


def pace_of(channel: Channel) -> str | None:
    """A channel's rate limits for people; None without any."""
    pace = channel.pace
    limits = [
        f"{limit:g} {unit}"
        for limit, unit in (
            (pace.per_bot_s, "a second for the bot"),
            (pace.per_chat_s, "a second for a chat"),
            (pace.per_group_min, "a minute for a group"),
        )
        if limit is not None
    ]
    return ", ".join(limits) or None


def _running(job: JobView, now_ms: int) -> str:
    until_ms = job.leased_until_ms or 0
    if until_ms > now_ms:
        return f"the process {job.leased_by} is working on it"
    return (
        f"the process {job.leased_by} stopped while it was working on it, and its lease ended at"
        f" {moment(until_ms)}; the next process that runs jobs takes it over"
    )


def _delayed(job: JobView, now_ms: int) -> str:
    at = moment_from(job.run_at_ms, now_ms)
    error = (job.last_error or "").partition("\n")[0]
    why = f" ({error})" if error else ""
    if job.attempts:
        return f"the next attempt is at {at}, after {_times(job.attempts)} failed{why}"
    if job.refused_from_ms is not None:
        since = moment(job.refused_from_ms)
        return f"the next attempt is at {at}: the platform has asked to wait since {since}{why}"
    return f"it is due at {at}{why}"


def _times(attempts: int) -> str:
    return "one attempt" if attempts == 1 else f"{attempts} attempts"


def _about(wait_ms: int) -> str:
    return "a second" if wait_ms < 2000 else duration(wait_ms)
