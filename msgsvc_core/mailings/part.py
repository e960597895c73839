"""The part of mailings: one message to many recipients, and reports on these and on single messages."""

from pluggy import HookRelay

from msgsvc_core.billing import BillingGate
from msgsvc_core.channels import Channels
from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.health.overdue import OverdueWork
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.outbound.send_attempt import RetryPolicy
from msgsvc_core.channels.system_messages.calls import BotCalls
from msgsvc_core.config.settings import Settings
from msgsvc_core.events import Events
from msgsvc_core.jobs import JobQueue
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.hooks import in_order
from msgsvc_core.mailings.dead_letters import DeadMailings
from msgsvc_core.mailings.deliveries import RecipientSender
from msgsvc_core.mailings.expansion import MailingExpansion
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.overdue import OverdueRecipients
from msgsvc_core.mailings.personal_data import PERSONAL_DATA
from msgsvc_core.mailings.purging import LedgerPurge
from msgsvc_core.mailings.route_moves import MailingRoutes
from msgsvc_core.mailings.route_watch import RouteWatch
from msgsvc_core.mailings.sending import MailingSender
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.mailings.validation import AudienceNames, MailingValidation
from msgsvc_core.messages.batches.counting import BatchCounts
from msgsvc_core.messages.edit_job import MessageEditor
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.messages.overdue import OverdueMessages
from msgsvc_core.messages.reports import DeliveryReports
from msgsvc_core.messages.route_progress import RouteProgress
from msgsvc_core.messages.templates import Templates
from msgsvc_core.parts import Built, Part
from msgsvc_core.routing import Routes
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.tags import Tags


def _mailings(
    *,
    clock: Clock,
    jobs: JobQueue,
    secrets: SecretBox,
    settings: Settings,
    hook: HookRelay,
    billing: BillingGate,
    channels: Channels,
    tags: Tags,
    permissions: Permissions,
    routes: Routes,
    templates: Templates,
) -> Built:
    links = LinkTracking(secrets=secrets, base_url=settings.base_url)
    names = AudienceNames(tags=tags, permissions=permissions, routes=routes)
    mailings = Mailings(
        clock=clock,
        jobs=jobs,
        billing=billing,
        validation=MailingValidation(
            clock=clock,
            channels=channels,
            templates=templates,
            names=names,
            limits=settings.limits,
            links=links,
            languages=settings.languages,
            default_lang=settings.default_lang,
        ),
        limits=settings.limits,
        on_ended=in_order(hook.on_mailing_ended),
        on_tested=in_order(hook.on_mailing_tested),
    )
    return Built(provides=[links, names, mailings])


def _outcomes(
    *,
    clock: Clock,
    jobs: JobQueue,
    events: Events,
    settings: Settings,
    channels: Channels,
    states: ChannelStates,
    subscribers: Subscribers,
    messages: MessageOutcomes,
    retries: RetryPolicy,
) -> Built:
    routes = MailingRoutes(
        clock=clock,
        jobs=jobs,
        channels=channels,
        subscribers=subscribers,
        find_stopped=states.find_stopped,
    )
    outcomes = MailingOutcomes(
        clock=clock,
        events=events,
        subscribers=subscribers,
        retries=retries,
        default_lang=settings.default_lang,
        messages=messages,
        routes=routes,
    )
    return Built(provides=[routes, outcomes])


def _reports(
    *,
    clock: Clock,
    jobs: JobQueue,
    events: Events,
    states: ChannelStates,
    subscribers: Subscribers,
    messages: MessageOutcomes,
    mailings: MailingOutcomes,
    batches: BatchCounts,
    progress: RouteProgress,
) -> Built:
    reports = DeliveryReports(
        clock=clock,
        jobs=jobs,
        events=events,
        subscribers=subscribers,
        outcomes=messages,
        # Batches last, as in `MessageOutcomes.count`.
        counters=[mailings, batches],
        routes=progress,
        stop_bot=states.stop_by_report,
    )
    return Built(provides=[reports], jobs=lambda: [reports.spec])


def _expansion(
    *,
    clock: Clock,
    jobs: JobQueue,
    settings: Settings,
    gates: OutboundGates,
    mailings: Mailings,
    names: AudienceNames,
    outcomes: MailingOutcomes,
) -> Built:
    dead = DeadMailings(clock=clock, gates=gates, mailings=mailings, outcomes=outcomes)
    expansion = MailingExpansion(
        clock=clock,
        jobs=jobs,
        mailings=mailings,
        names=names,
        most=settings.limits.broadcast_recipients,
        on_dead=dead.dead_letter,
    )
    return Built(provides=[dead, expansion], jobs=lambda: [expansion.spec])


def _sending(
    *,
    clock: Clock,
    settings: Settings,
    channels: Channels,
    gates: OutboundGates,
    sender: ChannelSender,
    subscribers: Subscribers,
    files: MessageFiles,
    limits: MessageLimits,
    links: LinkTracking,
    mailings: Mailings,
    outcomes: MailingOutcomes,
    retries: RetryPolicy,
    dead: DeadMailings,
) -> Built:
    sending = MailingSender(
        clock=clock,
        channels=channels,
        gates=gates,
        recipients=RecipientSender(
            subscribers=subscribers,
            limits=limits,
            links=links,
            default_lang=settings.default_lang,
            files=files,
            sender=sender,
        ),
        outcomes=outcomes,
        mailings=mailings,
        retries=retries,
        on_dead=dead.dead_letter,
    )
    return Built(provides=[sending], jobs=lambda: [sending.spec])


def _watch(
    *,
    clock: Clock,
    jobs: JobQueue,
    settings: Settings,
    channels: Channels,
    states: ChannelStates,
    mailings: Mailings,
    routes: MailingRoutes,
) -> Built:
    watch = RouteWatch(
        clock=clock,
        jobs=jobs,
        channels=channels,
        mailings=mailings,
        routes=routes,
        find_troubled=states.troubled,
    )
    purge = LedgerPurge(clock=clock, recipient_days=settings.limits.recipient_days)
    return Built(jobs=lambda: [watch.spec, purge.spec])


def _overdue(
    *,
    clock: Clock,
    channels: Channels,
    gates: OutboundGates,
    states: ChannelStates,
    subscribers: Subscribers,
    mailings: Mailings,
    outcomes: MailingOutcomes,
    messages: OverdueMessages,
    editor: MessageEditor,
    calls: BotCalls,
    settings: Settings,
) -> Built:
    recipients = OverdueRecipients(
        clock=clock,
        channels=channels,
        gates=gates,
        subscribers=subscribers,
        mailings=mailings,
        outcomes=outcomes,
        max_wait_ms=settings.limits.delivery_hours * HOUR_MS,
    )
    overdue = OverdueWork(
        states=states,
        work=[messages, editor, calls, recipients],
        end_expired=messages.end_expired,
    )
    states.before_resume.append(overdue.before_resume)
    return Built(jobs=lambda: [overdue.spec])


PART = Part(
    build=[_reports, _expansion, _sending, _watch, _overdue, _mailings, _outcomes],
    personal_data=PERSONAL_DATA,
)
