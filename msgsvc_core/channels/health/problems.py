"""Channels of a project that do not work, or send late."""

from typing import Literal

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.health.states import ChannelState, ChannelStates
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.registry.broken import BrokenChannel
from msgsvc_core.db import Tx
from msgsvc_core.jobs import inspection
from msgsvc_core.jobs.contract import NORMAL, URGENT
from msgsvc_core.kernel.clock import MINUTE_MS, Clock
from msgsvc_core.kernel.values import value_object

#: Milliseconds that a single message waits before its channel is late. Those of broadcasts wait by design.
LATE_MS = 5 * MINUTE_MS

#: Milliseconds that a platform asks to wait before that is a trouble: shorter pauses are usual.
PAUSED_MS = 10_000

#: `broken`: its settings can't be read. `stopped`: its platform refuses the bot. `unavailable`: an outage of
#: the platform. `paused`: its platform asks to wait. `interrupted`: it receives nothing. `limited`: a limit
#: of its own stops messages. `late`: a message has waited for long.
TroubleKind = Literal[
    "broken", "stopped", "unavailable", "paused", "interrupted", "limited", "late"
]


@value_object
class ChannelTrouble:
    """The first trouble of a channel that applies: the others follow from it.

    `detail` is the messenger's own text or an error, for people. `waited_ms` is how long a message has
    waited for a `late` channel, and `wait_ms` how long a `paused` one still waits, else 0.
    """

    channel: str
    kind: TroubleKind
    detail: str = ""
    waited_ms: int = 0
    wait_ms: int = 0


class ChannelTroubles:
    """What is wrong with channels, of all projects."""

    def __init__(self, *, clock: Clock, channels: Channels, states: ChannelStates) -> None:
        self._clock = clock
        self._channels = channels
        self._states = states

    async def of_project(self, tx: Tx, project_id: str) -> list[ChannelTrouble]:
        """Of its own and shared channels, in their order; empty if all work."""
        states = {state.channel: state for state in await self._states.troubled(tx)}
        found = []
        for channel in self._channels.list_for_project(project_id):
            trouble = (
                _recorded(channel, states.get(channel.key), self._clock.now_ms())
                or await self._limited(tx, channel)
                or await self._late(tx, channel)
            )
            if trouble is not None:
                found.append(trouble)
        return found

    async def _limited(self, tx: Tx, channel: Channel) -> ChannelTrouble | None:
        limitation = await channel.limitation(tx)
        return None if limitation is None else ChannelTrouble(channel.name, "limited", limitation)

    async def _late(self, tx: Tx, channel: Channel) -> ChannelTrouble | None:
        lane, now_ms = lane_of(channel.key), self._clock.now_ms()
        waiting = [
            await inspection.waiting_since_ms(tx, lane, priority) for priority in (URGENT, NORMAL)
        ]
        waited_ms = now_ms - min((since for since in waiting if since is not None), default=now_ms)
        if waited_ms < LATE_MS:
            return None
        return ChannelTrouble(channel.name, "late", waited_ms=waited_ms)


def _recorded(channel: Channel, state: ChannelState | None, now_ms: int) -> ChannelTrouble | None:
    name = channel.name
    if isinstance(channel, BrokenChannel):
        return ChannelTrouble(name, "broken", channel.why)
    found = [] if state is None else _restrictions(name, state, now_ms)
    return found[0] if found else None


def _restrictions(name: str, state: ChannelState, now_ms: int) -> list[ChannelTrouble]:
    found: list[ChannelTrouble] = []
    if state.stopped:
        found.append(ChannelTrouble(name, "stopped", state.detail or ""))
    if state.outage_since_ms is not None:
        found.append(ChannelTrouble(name, "unavailable", state.outage_detail or ""))
    wait_ms = state.paused_until_ms - now_ms
    if wait_ms >= PAUSED_MS:
        found.append(ChannelTrouble(name, "paused", wait_ms=wait_ms))
    if state.interrupted_since_ms is not None:
        found.append(ChannelTrouble(name, "interrupted", state.interrupted_detail or ""))
    return found
