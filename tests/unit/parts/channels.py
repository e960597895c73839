"""Channels, and what watches them, as the tests of their parts build them."""

from typing import Any

from pydantic import SecretStr

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.contract import Channel, ChannelHealth
from msgsvc_core.channels.kinds import ChannelKind
from msgsvc_core.channels.outages import ChannelOutages
from msgsvc_core.channels.states import ChannelState, ChannelStates
from msgsvc_core.config.settings import Section
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import exponential
from msgsvc_devkit import FakeContext
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.fakes import PROJECT
from tests.unit.parts.rows import NOW_MS, row_of

OWN = ChannelIdentity("support", "chn_1", PROJECT)


def own_channel(core: FakeContext) -> RecordingChannel:
    """The project's own bot `support`."""
    core.channels.register(OWN, "recording", {})
    return core.channels.recording("chn_1")


def state(channel: str = "messenger_a", **fields: Any) -> dict[str, Any]:
    values = {"status": "working", "reason": None, "detail": None, "paused_until_ms": 0}
    return row_of(ChannelState(channel, changed_at_ms=NOW_MS, **{**values, **fields}))


class FaxSettings(Section):
    """Of a kind with a secret, and with what only the operator sets."""

    token: SecretStr
    base_url: str = "https://fax.example"
    lines: int = 1


class Fax(RecordingChannel):
    """Whether it was closed, and how it is when its platform is asked."""

    is_closed = False
    health = ChannelHealth(ok=True, detail="Shop bot")

    async def check(self) -> ChannelHealth:
        return self.health

    async def close(self) -> None:
        self.is_closed = True


def fax(_context: object, identity: ChannelIdentity, _settings: Section) -> Channel:
    return Fax(identity)


FAX = ChannelKind("fax", FaxSettings, fax, operator_settings=frozenset({"base_url"}), title="Fax")


class Observed:
    """What was told of a channel's state."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def changed(self, key: str, *, stopped: bool) -> None:
        self.told.append(("changed", key, stopped))

    def outage_changed(self, key: str) -> None:
        self.told.append(("outage", key))

    async def stopped(self, _tx: Tx, channel: Channel, reason: str, detail: str) -> None:
        self.told.append(("stopped", channel.key, reason, detail))

    async def recovered(self, _tx: Tx, channel: Channel) -> None:
        self.told.append(("recovered", channel.key))


def watched_states(core: FakeContext, observed: Observed) -> ChannelStates:
    states = ChannelStates(
        clock=core.clock,
        db=core.db,
        events=core.events,
        channels=core.channels,
        check_every_s=60,
        on_stopped=observed.stopped,
        on_recovered=observed.recovered,
    )
    states.observers.append(observed)
    return states


def outages_with(core: FakeContext, observed: Observed) -> ChannelOutages:
    async def unavailable(_tx: Tx, channel: Channel, detail: str) -> None:
        observed.told.append(("unavailable", channel.key, detail))

    return ChannelOutages(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        metrics=core.metrics.channels,
        channels=core.channels,
        states=watched_states(core, observed),
        wait_s=exponential(10, 2, 60),
        on_unavailable=unavailable,
    )
