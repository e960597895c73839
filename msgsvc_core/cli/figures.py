"""What `msgsvc top` shows, read from the database: lanes, channels, and messages of the last minute."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgsvc_core.channels import Channel, Channels
from msgsvc_core.channels.health.explanation import pace_of
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.lanes import LANE, channel_of
from msgsvc_core.db import Database, Row, Tx
from msgsvc_core.events import Events
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.inspection import LaneLoad
from msgsvc_core.kernel.clock import Clock, optional_rfc3339, to_rfc3339

#: Seconds over which messages are counted.
MINUTE_S = 60

#: Seconds that are read again at each refresh: an event is committed a moment after its time.
AGAIN_S = 5

#: The events of messages that ended, by what they are counted as.
OUTCOMES = {"delivery.success": "sent", "delivery.failed": "failed"}

ChannelStatus = Literal["working", "stopped", "unavailable", "paused", "not receiving"]


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """A lane. `sent` and `failed` are the messages of the last minute, None for lanes that send none;
    `oldest_s` is how long the oldest due job has waited."""

    lane: str
    ready: int
    delayed: int
    running: int
    dead: int
    oldest_s: float | None
    sent: int | None
    failed: int | None


@dataclass(frozen=True, slots=True)
class ChannelFigures:
    """A channel. `since_ms` is when its status began, `until_ms` when it ends, if that is known."""

    key: str
    name: str
    project_id: str | None
    status: ChannelStatus
    detail: str
    since_ms: int | None
    until_ms: int | None
    pace: str | None


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything at one moment. `runners` is the number of processes that run jobs."""

    at_ms: int
    database: str
    runners: int
    lanes: Sequence[LaneFigures]
    channels: Sequence[ChannelFigures]
    sent: int
    failed: int

    def total(self, state: Literal["ready", "delayed", "running", "dead"]) -> int:
        """How many jobs of all lanes are in a state."""
        return sum(getattr(lane, state) for lane in self.lanes)

    def to_plain(self) -> dict[str, Any]:
        """For JSON, with times in RFC 3339."""
        return {
            "at": to_rfc3339(self.at_ms),
            "database": self.database,
            "runners": self.runners,
            "jobs": {
                "ready": self.total("ready"),
                "delayed": self.total("delayed"),
                "running": self.total("running"),
                "dead": self.total("dead"),
            },
            "messages_last_minute": {"sent": self.sent, "failed": self.failed},
            "lanes": [
                {
                    "lane": lane.lane,
                    "ready": lane.ready,
                    "delayed": lane.delayed,
                    "running": lane.running,
                    "dead": lane.dead,
                    "oldest_due_s": lane.oldest_s,
                    "sent_last_minute": lane.sent,
                    "failed_last_minute": lane.failed,
                }
                for lane in self.lanes
            ],
            "channels": [
                {
                    "channel": channel.name,
                    "key": channel.key,
                    "project_id": channel.project_id,
                    "status": channel.status,
                    "detail": channel.detail,
                    "since": optional_rfc3339(channel.since_ms),
                    "until": optional_rfc3339(channel.until_ms),
                    "pace": channel.pace,
                }
                for channel in self.channels
            ],
        }


class FiguresReader:
    """Reads the figures repeatedly. It remembers the messages of the last minute, so that a refresh
    counts those of the last seconds alone."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        events: Events,
        channels: Channels,
        states: ChannelStates,
    ) -> None:
        self._clock = clock
        self._db = db
        self._events = events
        self._channels = channels
        self._states = states
        #: Messages by second, and by channel key and outcome.
        self._seconds: dict[int, Counter[tuple[str, str]]] = {}

    async def read(self) -> Figures:
        """Raises `DatabaseUnavailable`."""
        async with self._db.read() as tx:
            now_ms = self._clock.now_ms()
            loads = await inspection.lane_loads(tx, now_ms)
            troubled = {state.channel: state for state in await self._states.troubled(tx)}
            runners = await inspection.count_runners(tx, now_ms)
            counts = await self._count(tx, now_ms // 1000)
        by_lane = {load.lane: load for load in loads}
        for channel in self._channels:
            # The lane of each channel is shown, also while it has no jobs.
            by_lane.setdefault(f"{LANE}:{channel.key}", LaneLoad(f"{LANE}:{channel.key}"))
        return Figures(
            at_ms=now_ms,
            database=self._db.dialect,
            runners=runners,
            lanes=[_lane(load, counts, now_ms) for load in by_lane.values()],
            channels=[
                channel_figures(channel, troubled.get(channel.key), now_ms)
                for channel in self._channels
            ],
            sent=_sum(counts, "sent"),
            failed=_sum(counts, "failed"),
        )

    async def _count(self, tx: Tx, now_s: int) -> Counter[tuple[str, str]]:
        first_s = now_s - MINUTE_S
        last_s = min(now_s, max(self._seconds, default=0))
        since_s = max(first_s, last_s - AGAIN_S)
        rows = await self._events.count_by_second(tx, list(OUTCOMES), since_s * 1000)
        self._seconds = {
            second: counts
            for second, counts in self._seconds.items()
            if first_s <= second < since_s
        }
        # So that the next refresh goes on from here, even if nothing has happened.
        self._seconds[now_s] = Counter()
        for row in rows:
            counts = self._seconds.setdefault(row["second"], Counter())
            counts[self._key_of(row), OUTCOMES[row["name"]]] += row["count"]
        total: Counter[tuple[str, str]] = Counter()
        for counts in self._seconds.values():
            total.update(counts)
        return total

    def _key_of(self, row: Row) -> str:
        """The key of the channel on which a message was sent; empty if it was removed since."""
        channel = self._channels.resolve(row["project_id"], row["channel"] or "")
        return "" if channel is None else channel.key


#: Orders of the lanes, the most urgent first, by name.
ORDERS: Mapping[str, Callable[[LaneFigures], Any]] = {
    "backlog": lambda lane: (-lane.ready, -lane.running, lane.lane),
    "oldest": lambda lane: (-(lane.oldest_s or 0), lane.lane),
    "rate": lambda lane: (-(lane.sent or 0) - (lane.failed or 0), lane.lane),
    "dead": lambda lane: (-lane.dead, lane.lane),
    "name": lambda lane: lane.lane,
}


def channel_figures(channel: Channel, state: ChannelState | None, now_ms: int) -> ChannelFigures:
    """A channel, and what troubles it most."""
    status: ChannelStatus = "working"
    detail, since_ms, until_ms = "", None, None
    if state is None:
        pass
    elif state.stopped:
        status, since_ms = "stopped", state.changed_at_ms
        detail = f"{state.reason}: {state.detail}"
    elif state.outage_since_ms is not None:
        status, since_ms, detail = "unavailable", state.outage_since_ms, state.outage_detail or ""
    elif state.paused_until_ms > now_ms:
        status, until_ms = "paused", state.paused_until_ms
        detail = "its platform asked it to wait"
    # One that polls no more may have been interrupted when it last did.
    elif state.interrupted_since_ms is not None and channel.receiving != "nothing":
        status, since_ms = "not receiving", state.interrupted_since_ms
        detail = state.interrupted_detail or ""
    return ChannelFigures(
        key=channel.key,
        name=channel.name,
        project_id=channel.identity.project_id,
        status=status,
        detail=detail,
        since_ms=since_ms,
        until_ms=until_ms,
        pace=pace_of(channel),
    )


def _lane(load: LaneLoad, counts: Counter[tuple[str, str]], now_ms: int) -> LaneFigures:
    sends = load.lane.startswith(f"{LANE}:")
    key = channel_of(load.lane)
    return LaneFigures(
        lane=load.lane,
        ready=load.ready,
        delayed=load.delayed,
        running=load.running,
        dead=load.dead,
        oldest_s=None if load.oldest_ms is None else max(0, now_ms - load.oldest_ms) / 1000,
        sent=counts[key, "sent"] if sends else None,
        failed=counts[key, "failed"] if sends else None,
    )


def _sum(counts: Counter[tuple[str, str]], outcome: str) -> int:
    return sum(count for (_, what), count in counts.items() if what == outcome)
