"""What a channel's calls go through on their way out, for the parts that call."""

from typing import NoReturn

from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.outages import ChannelOutages
from msgsvc_core.channels.outbound import OutboundGates
from msgsvc_core.channels.states import ChannelStates
from msgsvc_core.channels.words import ChannelSender
from msgsvc_core.config.settings import JobSettings, LimitSettings
from msgsvc_core.jobs.contract import exponential
from msgsvc_core.messages.deliveries import delivery_retries
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.plugins.context import PluginContext

#: As long as the default settings say.
RETRIES = delivery_retries(LimitSettings())


async def ignore(*_: object) -> None:
    """Nobody follows what a platform does."""


def button_pages(core: PluginContext) -> ButtonPages:
    return ButtonPages(
        clock=core.clock, secrets=core.secrets, base_url="https://msgsvc.test", days=30
    )


def no_checks() -> MessageFiles:
    """Files of messages are not looked at."""

    def refuse() -> NoReturn:
        raise AssertionError("nothing is looked at")

    return MessageFiles(enabled=False, checks=refuse)


def sender_of(core: PluginContext) -> ChannelSender:
    return ChannelSender(
        db=core.db,
        clock=core.clock,
        secrets=core.secrets,
        texts=core.texts,
        pages=button_pages(core),
        on_moved=core.subscribers.move_chat,
        language_of=core.subscribers.language_of,
    )


def states_of(core: PluginContext) -> ChannelStates:
    return ChannelStates(
        clock=core.clock,
        db=core.db,
        events=core.events,
        channels=core.channels,
        check_every_s=60,
        on_stopped=ignore,
        on_recovered=ignore,
    )


def outages_of(core: PluginContext, states: ChannelStates | None = None) -> ChannelOutages:
    return ChannelOutages(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        metrics=core.metrics.channels,
        channels=core.channels,
        states=states or states_of(core),
        wait_s=exponential(10, 2, 60),
        on_unavailable=ignore,
    )


def gates_of(core: PluginContext) -> OutboundGates:
    states = states_of(core)
    return OutboundGates(
        clock=core.clock,
        db=core.db,
        jobs=core.jobs,
        channels=core.channels,
        states=states,
        outages=outages_of(core, states),
        metrics=core.metrics.channels,
        settings=JobSettings(),
    )
