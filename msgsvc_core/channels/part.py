"""The part of channels: their registry, their states, and what goes out and comes in."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pluggy import HookRelay

from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.button_pages.pages import ButtonPagesRoutes
from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.buttons.offers import SEALED as QUESTIONS
from msgsvc_core.channels.commands import CommandCatalogue
from msgsvc_core.channels.context import ChannelContext, MediaSource, StoredFiles
from msgsvc_core.channels.health.metrics import ChannelStateMetrics
from msgsvc_core.channels.health.outages import ChannelOutages
from msgsvc_core.channels.health.problems import ChannelTroubles
from msgsvc_core.channels.health.states import (
    ChannelRecovered,
    ChannelStates,
    ChannelStopped,
    ChannelUnavailable,
)
from msgsvc_core.channels.inbound import Inbound
from msgsvc_core.channels.inbound.dispatch import InboundDispatcher
from msgsvc_core.channels.kinds import ChannelKinds
from msgsvc_core.channels.linked_buttons import SEALED as BUTTON_PAGES
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.pages import channel_routes
from msgsvc_core.channels.personal_data import PERSONAL_DATA
from msgsvc_core.channels.project_channels.models import ChannelRequestFinished
from msgsvc_core.channels.project_channels.request_routes import router as requests_router
from msgsvc_core.channels.project_channels.requests import FINISHED, ChannelRequests
from msgsvc_core.channels.project_channels.routes import router
from msgsvc_core.channels.project_channels.service import SEALED as CHANNEL_SETTINGS
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.shelf_routes import router as shelf_router
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.reception.bot_receiver import BotReceiver
from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.channels.reception.models import ReceptionInterrupted, ReceptionRecovered
from msgsvc_core.channels.reception.receiver import UpdateReceiver
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.retention import retention_rules
from msgsvc_core.channels.shelf import ItemTaker, Shelf
from msgsvc_core.channels.shelf.service import SEALED as SHELF
from msgsvc_core.channels.start_links.addresses import ChannelAddresses
from msgsvc_core.channels.start_links.start_codes import SEALED as START_CODES
from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.channels.system_messages.automatic_answers import AutomaticAnswers
from msgsvc_core.channels.system_messages.calls import BotCalls
from msgsvc_core.channels.system_messages.outbox import BotOutbox
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.events import Events, EventSpec
from msgsvc_core.jobs import JobQueue
from msgsvc_core.jobs.contract import exponential
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.hooks import flatten, in_order
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.kernel.providers import Later, Providers
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.limits import Limiter
from msgsvc_core.parts import Built, Part
from msgsvc_core.projects import Projects
from msgsvc_core.security import SecretBox
from msgsvc_core.telemetry import Metrics

EVENTS = (
    EventSpec(
        FINISHED,
        "A bot that you requested was made, and is connected or could not be.",
        ChannelRequestFinished,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.stopped",
        "The messenger banned your own bot, or revoked its token. Queued messages wait.",
        ChannelStopped,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.unavailable",
        "The platform of your own bot does not respond. Queued messages wait, and are "
        "sent after it recovers.",
        ChannelUnavailable,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.recovered",
        "Your own bot works again; queued messages are sent.",
        ChannelRecovered,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.reception_interrupted",
        "Your own bot can't receive updates, e.g. because another program polls for "
        "them. Sending may still work.",
        ReceptionInterrupted,
        of_subscriber=False,
        group="developers",
    ),
    EventSpec(
        "channel.reception_recovered",
        "Your own bot receives updates again, including those that the messenger stored in the meantime.",
        ReceptionRecovered,
        of_subscriber=False,
        group="developers",
    ),
)


def _outbox(
    *,
    clock: Clock,
    jobs: JobQueue,
    secrets: SecretBox,
    texts: Texts,
    metrics: Metrics,
    settings: Settings,
    dispatcher: Later[InboundDispatcher],
) -> Built:
    automatic = AutomaticAnswers(
        clock=clock,
        per_hour=settings.limits.automatic_answers_per_hour,
        per_day=settings.limits.automatic_answers_per_day,
        on_withheld=metrics.channels.withheld,
    )
    return Built(
        provides=[
            BotOutbox(jobs=jobs, secrets=secrets, automatic=automatic),
            CommandCatalogue(texts=texts, declared=lambda: dispatcher().commands),
            StartCodes(clock=clock, secrets=secrets),
            Shelf(
                clock=clock,
                secrets=secrets,
                metrics=metrics.channels,
                limits=settings.limits,
            ),
            ButtonPages(
                clock=clock,
                secrets=secrets,
                base_url=settings.base_url,
                days=settings.limits.button_page_days,
            ),
        ]
    )


def _context(
    *,
    clock: Clock,
    db: Database,
    secrets: SecretBox,
    settings: Settings,
    media: MediaSource,
    files: StoredFiles,
    providers: Providers,
    inbound: Later[Inbound],
) -> Built:
    async def last_update_ms(channel: str, chat_id: str) -> int | None:
        return await inbound().last_update_ms(channel, chat_id)

    context = ChannelContext(
        clock=clock,
        db=db,
        secrets=secrets,
        base_url=settings.base_url,
        media=lambda: media,
        is_own_address=files.is_own_address,
        provided=providers.get,
        last_update_ms=last_update_ms,
        default_country=settings.default_country,
    )
    return Built(provides=[context])


def _channels(
    *,
    db: Database,
    secrets: SecretBox,
    settings: Settings,
    hook: HookRelay,
    context: ChannelContext,
    commands: CommandCatalogue,
    start_codes: StartCodes,
    sync: Later[ChannelSync],
    inbound: Later[Inbound],
    states: Later[ChannelStates],
) -> Built:
    channels = Channels(
        db=db,
        kinds=ChannelKinds(
            flatten(hook.register_channel_kinds()),
            context=context,
            secrets=secrets,
            settings=settings.own_channels,
        ),
        settings=settings,
        addresses=ChannelAddresses(
            base_url=settings.base_url, secrets=secrets, start_codes=start_codes
        ),
        commands=commands,
        refresh=lambda: sync().refresh(),
        receive=lambda key, update: inbound().receive(key, update),
        apply_health=lambda channel, health, asked_at_ms: states().apply_health(
            channel, health, asked_at_ms=asked_at_ms
        ),
    )
    follow_s = settings.own_channels.follow_s
    return Built(
        provides=[
            channels,
            ChannelSync(db=db, secrets=secrets, channels=channels, follow_s=follow_s),
        ]
    )


def _states(
    *,
    clock: Clock,
    db: Database,
    events: Events,
    metrics: Metrics,
    settings: Settings,
    hook: HookRelay,
    channels: Channels,
) -> Built:
    states = ChannelStates(
        clock=clock,
        db=db,
        events=events,
        channels=channels,
        check_every_s=settings.jobs.stopped_check_s,
        on_stopped=in_order(hook.on_channel_stopped),
        on_recovered=in_order(hook.on_channel_recovered),
    )
    health = ReceptionHealth(
        clock=clock,
        db=db,
        events=events,
        channels=channels,
        states=states,
        failing_s=settings.jobs.reception_failing_s,
    )
    metrics.registry.register(
        ChannelStateMetrics(
            configured=settings.channels,
            label=metrics.channels.label,
            find=channels.get,
            troubled=states.troubled,
            database=metrics.database,
        )
    )
    troubles = ChannelTroubles(clock=clock, channels=channels, states=states)
    return Built(provides=[states, health, troubles], jobs=lambda: [states.spec])


def _requests(
    *,
    clock: Clock,
    jobs: JobQueue,
    events: Events,
    settings: Settings,
    channels: Channels,
    own_channels: ProjectChannels,
) -> Built:
    requests = ChannelRequests(
        clock=clock,
        jobs=jobs,
        events=events,
        channels=channels,
        own_channels=own_channels,
        settings=settings,
    )
    return Built(provides=[requests], jobs=lambda: [requests.spec])


def _gates(
    *,
    clock: Clock,
    db: Database,
    jobs: JobQueue,
    events: Events,
    metrics: Metrics,
    settings: Settings,
    hook: HookRelay,
    channels: Channels,
    states: ChannelStates,
) -> Built:
    probes = settings.jobs
    outages = ChannelOutages(
        clock=clock,
        jobs=jobs,
        events=events,
        metrics=metrics.channels,
        channels=channels,
        states=states,
        wait_s=exponential(probes.probe_first_s, 2, probes.probe_most_s),
        on_unavailable=in_order(hook.on_channel_unavailable),
    )
    gates = OutboundGates(
        clock=clock,
        db=db,
        jobs=jobs,
        channels=channels,
        states=states,
        outages=outages,
        metrics=metrics.channels,
        settings=settings.jobs,
    )
    states.observers.append(gates)
    return Built(
        provides=[outages, gates], jobs=lambda: [outages.spec], lanes=lambda: [gates.lanes]
    )


def _calls(
    *,
    clock: Clock,
    jobs: JobQueue,
    outbox: BotOutbox,
    gates: OutboundGates,
    sender: ChannelSender,
) -> Built:
    calls = BotCalls(clock=clock, jobs=jobs, outbox=outbox, gates=gates, sender=sender)
    return Built(provides=[calls], jobs=lambda: calls.specs)


def _inbound(
    *,
    clock: Clock,
    db: Database,
    texts: Texts,
    metrics: Metrics,
    tracing: Tracing | None,
    channels: Channels,
    outbox: BotOutbox,
    dispatcher: InboundDispatcher,
    commands: CommandCatalogue,
    shelf: Shelf,
) -> Built:
    inbound = Inbound(
        db=db,
        clock=clock,
        texts=texts,
        channels=channels,
        outbox=outbox,
        dispatcher=dispatcher,
        commands=commands,
        shelf=shelf,
        metrics=metrics.channels,
        tracing=tracing,
    )
    taker = ItemTaker(db=db, channels=channels, shelf=shelf, process=inbound.process)
    return Built(provides=[inbound, taker], jobs=lambda: [shelf.spec])


def _receiver(
    *,
    clock: Clock,
    db: Database,
    secrets: SecretBox,
    settings: Settings,
    channels: Channels,
    states: ChannelStates,
    health: ReceptionHealth,
) -> Built:
    receiver = UpdateReceiver(
        clock=clock,
        db=db,
        channels=channels,
        lease_s=settings.jobs.lease_s,
        new_reception=partial(
            BotReceiver,
            clock=clock,
            db=db,
            secrets=secrets,
            settings=settings,
            channels=channels,
            states=states,
            health=health,
        ),
    )
    return Built(provides=[receiver])


def _pages(
    *,
    db: Database,
    texts: Texts,
    limiter: Limiter,
    settings: Settings,
    projects: Projects,
    channels: Channels,
    inbound: Inbound,
    button_pages: ButtonPages,
) -> Sequence[Any]:
    of_buttons = ButtonPagesRoutes(
        db=db,
        texts=texts,
        projects=projects,
        channels=channels,
        pages=button_pages,
        press=inbound.press,
    )
    return [
        *channel_routes(
            channels=channels,
            inbound=inbound,
            limiter=limiter,
            qr_per_minute=settings.limits.qr_per_minute_per_address,
            max_body_bytes=settings.server.max_body_bytes,
            is_quarantined=settings.quarantine,
        ),
        *of_buttons.routes(),
    ]


PART = Part(
    build=[_outbox, _context, _channels, _states, _requests, _gates, _calls, _inbound, _receiver],
    endpoints=[*router.endpoints, *requests_router.endpoints, *shelf_router.endpoints],
    events=EVENTS,
    sealed=[CHANNEL_SETTINGS, QUESTIONS, START_CODES, BUTTON_PAGES, SHELF],
    personal_data=PERSONAL_DATA,
    retention=lambda limits: retention_rules(
        answer_hours=limits.answer_hours,
        button_page_days=limits.button_page_days,
        shelf_days=limits.shelf_days,
    ),
    pages=[_pages],
)
