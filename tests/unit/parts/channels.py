"""Channels, and what watches them, as the tests of their parts build them."""

from collections.abc import Sequence
from typing import Any

from pydantic import SecretStr

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.contract import Channel, ChannelHealth
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.kinds import ChannelKind
from msgsvc_core.config.sections import Section
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import exponential
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import MemoryCore
from msgsvc_devkit.channel import RecordingChannel, RecordingPlugin
from msgsvc_devkit.core import PROJECT
from tests.unit.parts.rows import NOW_MS

OWN = ChannelIdentity("support", "chn_1", PROJECT)


def own_channel(core: MemoryCore) -> RecordingChannel:
    """The project's own bot `support`; called again, another bot takes its place."""
    core.channels.register(OWN, "recording", {})
    return core.recording(OWN.key)


async def put_state(tx: Tx, channel: str = "messenger_a", **columns: Any) -> None:
    """What is known of a channel; it works, but for what is given."""
    await tx.insert("core_channel_states", {"channel": channel, "changed_at_ms": NOW_MS} | columns)


class FaxSettings(Section):
    """Of a kind with a secret, and with what only the operator sets."""

    token: SecretStr
    base_url: str = "https://fax.example"
    lines: int = 1


class Fax(RecordingChannel):
    """Its token, whether it was closed, how often its platform was asked, and how it is then."""

    token = ""
    is_closed = False
    checks = 0
    health = ChannelHealth(ok=True, detail="Shop bot")

    async def check(self) -> ChannelHealth:
        self.checks += 1
        return self.health

    async def close(self) -> None:
        self.is_closed = True


def fax(_context: object, identity: ChannelIdentity, settings: FaxSettings) -> Channel:
    made = Fax(identity)
    made.token = settings.token.get_secret_value()
    return made


FAX = ChannelKind("fax", FaxSettings, fax, operator_settings=frozenset({"base_url"}), title="Fax")


class FaxPlugin:
    """Registers the channel kind `fax`."""

    @hookimpl
    def register_channel_kinds(self) -> Sequence[ChannelKind]:
        return [FAX]


def the_fax(core: MemoryCore, key: str) -> Fax:
    """The bot of that key."""
    channel = core.channels[key]
    assert isinstance(channel, Fax)
    return channel


def another_process(core: MemoryCore) -> Service:
    """A service of the same deployment, which knows of channels only what is in the database."""
    plugins = [("recording", RecordingPlugin()), ("fax", FaxPlugin())]
    return Service(core.config, clock=core.clock, extra_plugins=plugins, database=core.db)


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


def watched_states(core: PluginContext, observed: Observed) -> ChannelStates:
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


def outages_with(core: PluginContext, observed: Observed) -> ChannelOutages:
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
