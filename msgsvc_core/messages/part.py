"""The part of messages: how they are taken, delivered and edited, and what users do with them."""

from msgsvc_core.billing import BillingGate
from msgsvc_core.channels import Channels
from msgsvc_core.channels.buttons.fallbacks import ChannelSender, TypedAnswers
from msgsvc_core.channels.inbound.dispatch import InboundDispatcher
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy
from msgsvc_core.channels.project_channels.requests import ChannelRequests
from msgsvc_core.channels.start_links.start_codes import StartCodes
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.events import Events, EventSpec
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.jobs import JobQueue
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.i18n import Texts
from msgsvc_core.messages.batches.counting import BatchCounts
from msgsvc_core.messages.batches.routes import router as batches_router
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.messages.deliveries import DeliveryLoader, delivery_retries
from msgsvc_core.messages.delivery import MessageDelivery
from msgsvc_core.messages.edit_job import MessageEditor
from msgsvc_core.messages.edits import MessageChanges
from msgsvc_core.messages.erasure import erase_messages
from msgsvc_core.messages.events import (
    BatchCompleted,
    ButtonClicked,
    DeliveryDelivered,
    DeliveryFailed,
    DeliveryRead,
    DeliverySuccess,
)
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.indexing import NOT_COPIED, MessageFiling
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.messages.overdue import OverdueMessages
from msgsvc_core.messages.personal_data import PERSONAL_DATA
from msgsvc_core.messages.reports import DeliveryReports
from msgsvc_core.messages.retention import MessagePurge
from msgsvc_core.messages.route_moves import RouteMoves, merge_people
from msgsvc_core.messages.route_progress import RouteProgress
from msgsvc_core.messages.routes import router
from msgsvc_core.messages.service import Messages
from msgsvc_core.messages.templates.routes import router as templates_router
from msgsvc_core.messages.templates.service import Templates
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_core.parts import Built, Part
from msgsvc_core.routing import Routes
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.phones import PlatformPhones
from msgsvc_core.telemetry import Metrics

EVENTS = (
    EventSpec(
        "delivery.success",
        "The messenger accepted a message.",
        DeliverySuccess,
        in_history=False,
        group="sending",
    ),
    EventSpec(
        "delivery.failed",
        "A message failed permanently.",
        DeliveryFailed,
        in_history=False,
        group="sending",
    ),
    EventSpec(
        "delivery.delivered",
        "The messenger reported that a message arrived, where it reports that.",
        DeliveryDelivered,
        in_history=False,
        group="sending",
        title=lambda _, _data: _("Message delivered"),
    ),
    EventSpec(
        "delivery.read",
        "The messenger reported that a message was read, where it reports that.",
        DeliveryRead,
        in_history=False,
        group="sending",
        title=lambda _, _data: _("Message read"),
    ),
    EventSpec(
        "batch.completed",
        "Every message of a `POST /v1/send/batch` is sent, failed or skipped.",
        BatchCompleted,
        of_subscriber=False,
        group="sending",
    ),
    EventSpec(
        "button.clicked",
        "A user pressed a button of one of your messages.",
        ButtonClicked,
        group="people",
        title=lambda _, _data: _("Pressed a button"),
    ),
)


def _templates(*, clock: Clock, db: Database, settings: Settings, channels: Channels) -> Built:
    limits = MessageLimits.of(settings.limits)
    templates = Templates(
        clock=clock,
        db=db,
        channels=channels,
        limits=limits,
        languages=settings.languages,
        default_lang=settings.default_lang,
        most=settings.limits.templates,
    )
    return Built(provides=[limits, templates, delivery_retries(settings.limits)])


def _messages(
    *,
    clock: Clock,
    db: Database,
    jobs: JobQueue,
    events: Events,
    metrics: Metrics,
    billing: BillingGate,
    channels: Channels,
    subscribers: Subscribers,
    permissions: Permissions,
    templates: Templates,
    routes: Routes,
    limits: MessageLimits,
    batches: BatchCounts,
) -> Built:
    messages = Messages(
        clock=clock,
        db=db,
        jobs=jobs,
        events=events,
        billing=billing,
        subscribers=subscribers,
        validation=MessageValidation(
            db=db,
            channels=channels,
            subscribers=subscribers,
            permissions=permissions,
            templates=templates,
            limits=limits,
            routes=routes,
            clock=clock,
        ),
        changes=MessageChanges(
            clock=clock,
            jobs=jobs,
            events=events,
            metrics=metrics,
            channels=channels,
            subscribers=subscribers,
            batches=batches,
            limits=limits,
        ),
    )
    return Built(provides=[messages])


def _batches(
    *,
    clock: Clock,
    db: Database,
    jobs: JobQueue,
    settings: Settings,
    billing: BillingGate,
    messages: Messages,
) -> Built:
    batches = Batches(
        clock=clock,
        db=db,
        jobs=jobs,
        billing=billing,
        messages=messages,
        most=settings.limits.batch_messages,
    )
    return Built(provides=[batches])


def _outcomes(
    *,
    clock: Clock,
    jobs: JobQueue,
    events: Events,
    metrics: Metrics,
    subscribers: Subscribers,
    routes: Routes,
) -> Built:
    batches = BatchCounts(clock=clock, events=events)
    moves = RouteMoves(
        clock=clock, jobs=jobs, events=events, subscribers=subscribers, chooser=routes.chooser
    )
    progress = RouteProgress(moves=moves, batches=batches)
    outcomes = MessageOutcomes(
        clock=clock,
        events=events,
        metrics=metrics,
        subscribers=subscribers,
        batches=batches,
        routed=moves,
    )
    return Built(provides=[batches, progress, outcomes], jobs=lambda: [progress.spec, batches.spec])


def _delivery(
    *,
    clock: Clock,
    db: Database,
    jobs: JobQueue,
    settings: Settings,
    media: MediaFiles,
    channels: Channels,
    gates: OutboundGates,
    sender: ChannelSender,
    subscribers: Subscribers,
    messages: Messages,
    outcomes: MessageOutcomes,
    retries: RetryPolicy,
) -> Built:
    files = MessageFiles(enabled=settings.media.check, checks=lambda: media.checks)
    loader = DeliveryLoader(db=db, subscribers=subscribers)
    delivery = MessageDelivery(
        clock=clock,
        gates=gates,
        loader=loader,
        files=files,
        outcomes=outcomes,
        retries=retries,
        sender=sender,
        preferences=subscribers.preferences,
    )
    editor = MessageEditor(
        clock=clock,
        jobs=jobs,
        gates=gates,
        subscribers=subscribers,
        changes=messages.changes,
        files=files,
        retries=retries,
        sender=sender,
    )
    overdue = OverdueMessages(
        clock=clock,
        jobs=jobs,
        channels=channels,
        subscribers=subscribers,
        loader=loader,
        outcomes=outcomes,
        max_wait_ms=settings.limits.delivery_hours * HOUR_MS,
    )
    return Built(
        provides=[files, delivery, editor, overdue], jobs=lambda: [delivery.spec, editor.spec]
    )


def _storing(
    *, clock: Clock, db: Database, settings: Settings, partitioning: Partitioning
) -> Built:
    filing = MessageFiling(db=db)
    purge = MessagePurge(
        clock=clock, message_days=settings.limits.message_days, partitioning=partitioning
    )
    return Built(provides=[purge], jobs=lambda: [filing.spec] if db.dialect == "sqlite" else [])


def _dispatcher(
    *,
    clock: Clock,
    secrets: SecretBox,
    texts: Texts,
    settings: Settings,
    start_codes: StartCodes,
    requests: ChannelRequests,
    subscribers: Subscribers,
    phones: PlatformPhones,
    messages: Messages,
    reports: DeliveryReports,
    progress: RouteProgress,
) -> Built:
    """What users and platforms do leads to."""
    dispatcher = InboundDispatcher(
        texts=texts,
        typed_answers=TypedAnswers(
            clock=clock, secrets=secrets, answer_hours=settings.limits.answer_hours
        ),
        start_codes=start_codes,
        chats=subscribers,
        on_project_button=messages.button_pressed,
        on_phone=phones.record,
        on_report=reports.record,
        on_answer=progress.answered,
        on_bot_created=requests.record,
    )
    return Built(provides=[dispatcher])


PART = Part(
    build=[_delivery, _outcomes, _templates, _messages, _batches, _storing, _dispatcher],
    endpoints=[*router.endpoints, *batches_router.endpoints, *templates_router.endpoints],
    events=EVENTS,
    personal_data=PERSONAL_DATA,
    not_copied=NOT_COPIED,
    erasers=[erase_messages],
    on_merged=[merge_people],
)
