"""The composition root: one `Service` owns one of everything. There are no globals.

service = Service(load_settings(Path("msgsvc.toml")))
app = service.app                      # an ASGI application with its lifespan

async with service:                    # or started by hand, inside another application
    await service.messages.send(project_id, subscriber_id="sub_...", text="Hello")
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import structlog
from starlette.types import ASGIApp

from msgsvc_core.api.endpoint import Endpoint, check_endpoints
from msgsvc_core.billing import BillingGate, Plan
from msgsvc_core.channels import (
    Channel,
    ChannelContext,
    ChannelHealth,
    Channels,
    Inbound,
    Update,
)
from msgsvc_core.channels.addresses import ChannelAddresses
from msgsvc_core.channels.button_pages import ButtonPages
from msgsvc_core.channels.button_pages.pages import ButtonPagesRoutes
from msgsvc_core.channels.calls import BotCalls
from msgsvc_core.channels.commands import CommandCatalogue
from msgsvc_core.channels.dispatch import InboundDispatcher
from msgsvc_core.channels.kinds import ChannelKinds
from msgsvc_core.channels.outages import ChannelOutages
from msgsvc_core.channels.outbound import OutboundGates
from msgsvc_core.channels.outbox import BotOutbox
from msgsvc_core.channels.pages import channel_routes
from msgsvc_core.channels.project_channels.request_routes import (
    router as channel_requests_router,
)
from msgsvc_core.channels.project_channels.requests import ChannelRequests
from msgsvc_core.channels.project_channels.routes import router as channels_router
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.receiver import UpdateReceiver
from msgsvc_core.channels.reception import BotReceiver
from msgsvc_core.channels.reception_health import ReceptionHealth
from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.channels.state_metrics import ChannelStateMetrics
from msgsvc_core.channels.states import ChannelStates
from msgsvc_core.channels.troubles import ChannelTroubles
from msgsvc_core.channels.words import ChannelSender, TypedAnswers
from msgsvc_core.config.settings import Section, Settings, read_sections
from msgsvc_core.core_parts import CORE_EVENTS, CORE_PERSONAL_DATA, CORE_SEALED, retention_rules
from msgsvc_core.dashboard import Pages
from msgsvc_core.dashboard.previewing import MessagePreviews
from msgsvc_core.dashboard.writing import MessageChoices
from msgsvc_core.db import (
    CORE_MIGRATIONS,
    Database,
    MigrationRefused,
    MigrationSource,
    Phase,
    Tx,
    migrate,
    read_schema_in,
)
from msgsvc_core.db.sessions import session_name
from msgsvc_core.db.unfinished import check_finished
from msgsvc_core.events import Events, Listener
from msgsvc_core.events.erasure import erase_events
from msgsvc_core.events.routes import router as events_router
from msgsvc_core.events.tracked import TrackedEvents
from msgsvc_core.files import Files
from msgsvc_core.files import fetching as file_fetching
from msgsvc_core.files.media import MediaFiles
from msgsvc_core.files.pages import file_routes
from msgsvc_core.files.purging import FilePurge, erase_files
from msgsvc_core.files.routes import router as files_router
from msgsvc_core.http.idempotency import erase_stored_answers
from msgsvc_core.jobs import JobContext, JobQueue, JobSpec, LaneSpec
from msgsvc_core.jobs.admin import JobAdmin
from msgsvc_core.jobs.contract import exponential
from msgsvc_core.jobs.engine import Role, start_jobs
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.jobs.resealing import Resealing
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.jobs.runner import LaneRunner
from msgsvc_core.kernel.clock import Clock, SystemClock
from msgsvc_core.kernel.errors import CORE_ERRORS, ErrorCatalogue
from msgsvc_core.kernel.hooks import await_in_order, flatten, in_order
from msgsvc_core.kernel.i18n import CORE, Texts
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.limits import DatabaseLimiter, Limiter
from msgsvc_core.mailings import Mailings
from msgsvc_core.mailings.dead_letters import DeadMailings
from msgsvc_core.mailings.deliveries import RecipientSender
from msgsvc_core.mailings.expansion import MailingExpansion
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.purging import LedgerPurge
from msgsvc_core.mailings.route_moves import MailingRoutes
from msgsvc_core.mailings.route_watch import RouteWatch
from msgsvc_core.mailings.sending import MailingSender
from msgsvc_core.mailings.validation import AudienceNames, MailingValidation
from msgsvc_core.members import Members
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.owners import OwnerProtection
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.members.routes import router as members_router
from msgsvc_core.messages import Messages
from msgsvc_core.messages.batches.counting import BatchCounts
from msgsvc_core.messages.batches.routes import router as batches_router
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.messages.deliveries import DeliveryLoader, delivery_retries
from msgsvc_core.messages.delivery import MessageDelivery
from msgsvc_core.messages.edit_job import MessageEditor
from msgsvc_core.messages.edits import MessageChanges
from msgsvc_core.messages.erasure import erase_messages
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.indexing import MessageFiling
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.messages.reports import DeliveryReports
from msgsvc_core.messages.retention import MessagePurge
from msgsvc_core.messages.route_moves import RouteMoves, merge_people
from msgsvc_core.messages.route_progress import RouteProgress
from msgsvc_core.messages.routes import router as messages_router
from msgsvc_core.messages.templates import Templates
from msgsvc_core.messages.templates.routes import router as templates_router
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.plugins.audit import AuditLog
from msgsvc_core.plugins.context import Peers, PluginContext
from msgsvc_core.plugins.loading import create_plugins, load_plugins, package, unloaded_events
from msgsvc_core.plugins.planned import PlannedMessages
from msgsvc_core.plugins.sign_ins import SignIns
from msgsvc_core.plugins.tickets import TicketDesk, TicketRequest
from msgsvc_core.projects import Projects
from msgsvc_core.projects.branding.pages import branding_routes
from msgsvc_core.projects.branding.routes import router as branding_router
from msgsvc_core.projects.overview import ProjectOverview
from msgsvc_core.projects.routes import router as projects_router
from msgsvc_core.routing import RouteChooser, Routes
from msgsvc_core.routing.routes import router as routes_router
from msgsvc_core.security import key_canary
from msgsvc_core.security.secret_box import SecretBox
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.subscribers import routes as subscriber_routes
from msgsvc_core.subscribers.bulk_actions import BulkActions
from msgsvc_core.subscribers.bulk_actions.routes import router as bulk_actions_router
from msgsvc_core.subscribers.consent import Consents
from msgsvc_core.subscribers.contacts import VerifiedContacts
from msgsvc_core.subscribers.conversation import Conversation
from msgsvc_core.subscribers.erasure import SubscriberErasure
from msgsvc_core.subscribers.export_routes import router as export_router
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.imports import PeopleImports
from msgsvc_core.subscribers.imports.routes import router as imports_router
from msgsvc_core.subscribers.imports.rows import RowImporter
from msgsvc_core.subscribers.languages import LanguageMapping
from msgsvc_core.subscribers.leaving_routes import router as leaving_router
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.mini_app import MiniAppSubscribing
from msgsvc_core.subscribers.people import People
from msgsvc_core.subscribers.people.routes import router as people_router
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.permissions.routes import router as permissions_router
from msgsvc_core.subscribers.personal_data import PersonalDataExport
from msgsvc_core.subscribers.personal_data.routes import router as personal_data_router
from msgsvc_core.subscribers.phones import PlatformPhones
from msgsvc_core.subscribers.preferences.pages import PreferencesPages
from msgsvc_core.subscribers.preferences.service import Preferences
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_core.subscribers.subscribing import Subscribing
from msgsvc_core.subscribers.tags import Tags
from msgsvc_core.subscribers.tags.routes import router as tags_router
from msgsvc_core.telemetry import Metrics
from msgsvc_core.telemetry.database_metrics import DatabaseMetrics
from msgsvc_core.telemetry.logs import configure_unless_done

if TYPE_CHECKING:
    from msgsvc_core.telemetry.explanations import Explainer

T = TypeVar("T")
S = TypeVar("S", bound=Section)

CORE_LOCALE = Path(__file__).parent / "locale"
log = structlog.get_logger(__name__)

CORE_ROUTERS = (
    projects_router,
    branding_router,
    channels_router,
    channel_requests_router,
    subscriber_routes.router,
    tags_router,
    subscriber_routes.tags_router,
    permissions_router,
    subscriber_routes.permissions_router,
    leaving_router,
    export_router,
    people_router,
    imports_router,
    personal_data_router,
    bulk_actions_router,
    messages_router,
    batches_router,
    templates_router,
    routes_router,
    files_router,
    events_router,
    members_router,
)


class MigrationsPending(Exception):
    """The database is older than the code. `msgsvc migrate` brings it up to date."""


class Service:
    """Everything a deployment of msgsvc is made of.

    `extra_plugins` are plugin objects by name, beside those that `settings.plugins` names; tests and
    embedders use it for plugins that are not installed. `tracing` records spans, by default as `settings`
    say. `database` replaces that of `settings.database_url`; its schema is the caller's business.
    """

    #: Whether the start found that the database holds what none of `secret_keys` reads.
    keys_are_lost = False

    #: Whether `/readyz` tells balancers to send requests elsewhere, see `begin_drain`.
    is_draining = False

    def __init__(  # noqa: PLR0915 - the composition root builds everything, one statement a part
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        extra_plugins: Iterable[tuple[str, Any]] = (),
        tracing: Tracing | None = None,
        database: Database | None = None,
    ) -> None:
        configure_unless_done()
        self.settings = settings
        limits = settings.limits
        self.clock = clock or SystemClock()
        self._tracing = tracing or _tracing_by(settings)
        self.plugins = load_plugins(settings.plugins, extra_plugins)
        hook = self.plugins.hook
        self._sections = read_sections(settings, hook.register_settings())
        self.db = database or Database(
            settings.database_url,
            pool_size=settings.database_pool,
            synchronous=settings.sqlite_synchronous,
            session=self._session_name(),
        )
        self.secrets = SecretBox([key.get_secret_value() for key in settings.secret_keys])
        self.limiter = self._new_limiter(server_time=clock is None)
        self.jobs = JobQueue(self.clock)
        self.metrics = Metrics(
            channels=settings.channels,
            database=DatabaseMetrics(
                db=self.db,
                clock=self.clock,
                count_jobs=self.jobs.count_by_lane,
                count_runners=self.jobs.count_runners,
                lane_prefixes=lambda: [spec.prefix for spec in self.lane_specs],
                check_redis=self.limiter.check,
            ),
            dialect=self.db.dialect,
            is_quarantined=settings.quarantine,
        )
        self.errors = ErrorCatalogue([*CORE_ERRORS, *flatten(hook.register_errors())])
        own_texts = [
            (package(each.plugin), cast("Path", each.function()))
            for each in hook.register_locale.get_hookimpls()
        ]
        self.texts = Texts(
            [(CORE, CORE_LOCALE), *own_texts],
            settings.default_lang,
            settings.languages,
            settings.locale_dir,
        )
        self.outbox = BotOutbox(jobs=self.jobs, secrets=self.secrets)
        self.commands = CommandCatalogue(
            texts=self.texts, declared=lambda: self.dispatcher.commands
        )
        self.job_admin = JobAdmin(queue=self.jobs, clock=self.clock, specs=lambda: self.job_specs)
        self.events = Events(
            clock=self.clock,
            specs=[*CORE_EVENTS, *flatten(hook.register_events())],
            observe=in_order(hook.on_events),
            count=self.metrics.count_events,
            find_unloaded=lambda: unloaded_events(
                [name for name, _ in self.plugins.list_name_plugin()]
            ),
        )
        self.projects = Projects(self.db, self.clock, logo_bytes=limits.logo_bytes)
        self.accounts = AccountDirectory(source=hook.register_accounts)
        self.audit = AuditLog(record=in_order(hook.on_audited))
        self.billing = BillingGate(
            db=self.db,
            charge=in_order(hook.charge),
            check=in_order(hook.check_operation),
            quote=self._quote,
            owner_of=self.projects.owner_of,
            decide_plan=self._decide_plan,
        )
        self.files = Files(
            clock=self.clock,
            db=self.db,
            secrets=self.secrets,
            settings=settings.media,
            jobs=self.jobs,
            base_url=settings.base_url,
        )
        self.start_codes = StartCodes(clock=self.clock, secrets=self.secrets)
        self.channels = Channels(
            db=self.db,
            kinds=ChannelKinds(
                flatten(hook.register_channel_kinds()),
                context=self._channel_context(),
                secrets=self.secrets,
                settings=settings.own_channels,
            ),
            settings=settings,
            addresses=ChannelAddresses(
                base_url=settings.base_url, secrets=self.secrets, start_codes=self.start_codes
            ),
            commands=self.commands,
            refresh=self._refresh_channels,
            receive=self._receive_update,
            apply_health=self._apply_channel_health,
        )
        self.channel_sync = ChannelSync(
            db=self.db,
            secrets=self.secrets,
            channels=self.channels,
            follow_s=settings.own_channels.follow_s,
        )
        self.erasure = SubscriberErasure(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            erasers=[
                erase_messages,
                erase_events,
                partial(erase_stored_answers, self.secrets, settings.errors_url),
                erase_files,
                self._erase_in_plugins,
            ],
        )
        self.tags = Tags(
            clock=self.clock,
            jobs=self.jobs,
            max_tags=limits.tags,
            on_added=in_order(hook.on_tags_added),
        )
        self.permissions = Permissions(
            clock=self.clock, events=self.events, max_permissions=limits.permissions
        )
        self.greetings = Greetings(texts=self.texts, outbox=self.outbox, projects=self.projects)
        subscribing = Subscribing(
            clock=self.clock,
            texts=self.texts,
            events=self.events,
            channels=self.channels,
            tags=self.tags,
            permissions=self.permissions,
            greetings=self.greetings,
            preferences=PreferencesLinks(
                clock=self.clock,
                secrets=self.secrets,
                base_url=settings.base_url,
                days=limits.preferences_days,
            ),
        )
        self.subscribers = Subscribers(
            db=self.db,
            events=self.events,
            channels=self.channels,
            tags=self.tags,
            permissions=self.permissions,
            subscribing=subscribing,
            erasure=self.erasure,
            attributes_bytes=limits.attributes_bytes,
        )
        self.language_mapping = LanguageMapping(languages=settings.languages)
        self.bulk_actions = BulkActions(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            subscribers=self.subscribers,
            tags=self.tags,
            most=limits.bulk_action_subscribers,
        )
        self.contacts = VerifiedContacts(
            clock=self.clock, secrets=self.secrets, channels=self.channels
        )
        self.people_imports = PeopleImports(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            secrets=self.secrets,
            rows=RowImporter(
                channels=self.channels,
                subscribers=self.subscribers,
                subscribing=subscribing,
                tags=self.tags,
            ),
            most_rows=limits.import_rows,
            most_bytes=limits.import_bytes,
        )
        self.people = People(
            subscribers=self.subscribers, contacts=self.contacts, on_merged=merge_people
        )
        self.personal_data = PersonalDataExport(
            clock=self.clock,
            subscribers=self.subscribers,
            people=self.people,
            contacts=self.contacts,
            declared=[*CORE_PERSONAL_DATA, *flatten(hook.register_personal_data())],
        )
        self.button_pages = ButtonPages(
            clock=self.clock,
            secrets=self.secrets,
            base_url=settings.base_url,
            days=limits.button_page_days,
        )
        self.channel_sender = ChannelSender(
            db=self.db,
            clock=self.clock,
            secrets=self.secrets,
            texts=self.texts,
            pages=self.button_pages,
            on_moved=self.subscribers.move_chat,
            language_of=self.subscribers.language_of,
        )
        self.consents = Consents(
            clock=self.clock,
            secrets=self.secrets,
            texts=self.texts,
            projects=self.projects,
            channels=self.channels,
            outbox=self.outbox,
            personal_link_s=limits.personal_link_s,
        )
        self.links = SubscriptionLinks(
            clock=self.clock,
            projects=self.projects,
            subscribers=self.subscribers,
            tags=self.tags,
            permissions=self.permissions,
            consents=self.consents,
            personal_link_s=limits.personal_link_s,
        )
        self.mini_apps = MiniAppSubscribing(
            clock=self.clock,
            channels=self.channels,
            subscribers=self.subscribers,
            tags=self.tags,
            max_age_hours=limits.mini_app_hours,
        )
        self.tracked_events = TrackedEvents(
            events=self.events,
            find_subscriber=self.subscribers.get_by_identifier,
            max_bytes=limits.event_properties_bytes,
        )
        self.project_overview = ProjectOverview(
            projects=self.projects,
            limits=limits,
            plan_of=self.billing.plan_of,
            channels_of=self.channels.list_for_project,
        )
        self.members = Members(
            clock=self.clock,
            subscribers=self.subscribers,
            quota=MemberQuota(
                owner_of=self.projects.owner_of,
                plan_of=self.billing.plan_of_account,
                email_of=self._email_of,
            ),
            on_changed=in_order(hook.on_member_changed),
        )
        self.owner_protection = OwnerProtection(
            check_role=in_order(hook.check_role_change),
            check_identity=in_order(hook.check_identity_change),
        )
        self.member_links = MemberLinks(
            clock=self.clock,
            projects=self.projects,
            subscribers=self.subscribers,
            members=self.members,
        )
        self.conversation = Conversation(
            clock=self.clock,
            texts=self.texts,
            projects=self.projects,
            subscribers=self.subscribers,
            permissions=self.permissions,
            greetings=self.greetings,
            commands=self.commands.listed,
        )
        self.channel_states = ChannelStates(
            clock=self.clock,
            db=self.db,
            events=self.events,
            channels=self.channels,
            check_every_s=settings.jobs.stopped_check_s,
            on_stopped=in_order(hook.on_channel_stopped),
            on_recovered=in_order(hook.on_channel_recovered),
        )
        self.own_channels = ProjectChannels(
            clock=self.clock,
            db=self.db,
            secrets=self.secrets,
            channels=self.channels,
            sync=self.channel_sync,
            states=self.channel_states,
            has_subscribers=self.subscribers.has_bot,
            settings=settings,
        )
        self.channel_requests = ChannelRequests(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            channels=self.channels,
            own_channels=self.own_channels,
            settings=settings,
        )
        self.message_files = MessageFiles(
            enabled=settings.media.check, checks=lambda: self.media.checks
        )
        message_limits = MessageLimits.of(settings.limits)
        self.templates = Templates(
            clock=self.clock,
            db=self.db,
            channels=self.channels,
            limits=message_limits,
            languages=settings.languages,
            default_lang=settings.default_lang,
            most=settings.limits.templates,
        )
        self.routes = Routes(
            clock=self.clock,
            channels=self.channels,
            limits=settings.limits,
            chooser=RouteChooser(
                db=self.db,
                channels=self.channels,
                find_stopped=self.channel_states.find_stopped,
                subscribers=self.subscribers,
                permissions=self.permissions,
            ),
        )
        self.batch_counts = BatchCounts(clock=self.clock, events=self.events)
        self.messages = Messages(
            clock=self.clock,
            db=self.db,
            jobs=self.jobs,
            events=self.events,
            billing=self.billing,
            subscribers=self.subscribers,
            validation=MessageValidation(
                db=self.db,
                channels=self.channels,
                subscribers=self.subscribers,
                permissions=self.permissions,
                templates=self.templates,
                limits=message_limits,
                routes=self.routes,
                clock=self.clock,
            ),
            changes=MessageChanges(
                clock=self.clock,
                jobs=self.jobs,
                metrics=self.metrics,
                channels=self.channels,
                batches=self.batch_counts,
                limits=message_limits,
            ),
        )
        route_moves = RouteMoves(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            subscribers=self.subscribers,
            chooser=self.routes.chooser,
        )
        self.route_progress = RouteProgress(moves=route_moves, batches=self.batch_counts)
        self.message_outcomes = MessageOutcomes(
            clock=self.clock,
            events=self.events,
            metrics=self.metrics,
            subscribers=self.subscribers,
            batches=self.batch_counts,
            routed=route_moves,
        )
        self.batches = Batches(
            clock=self.clock,
            db=self.db,
            jobs=self.jobs,
            billing=self.billing,
            messages=self.messages,
            most=settings.limits.batch_messages,
        )
        link_tracking = LinkTracking(secrets=self.secrets, base_url=settings.base_url)
        audience_names = AudienceNames(
            tags=self.tags, permissions=self.permissions, routes=self.routes
        )
        self.mailings = Mailings(
            clock=self.clock,
            jobs=self.jobs,
            billing=self.billing,
            validation=MailingValidation(
                clock=self.clock,
                channels=self.channels,
                templates=self.templates,
                names=audience_names,
                limits=settings.limits,
                links=link_tracking,
                languages=settings.languages,
                default_lang=settings.default_lang,
            ),
            limits=settings.limits,
            on_ended=in_order(hook.on_mailing_ended),
            on_tested=in_order(hook.on_mailing_tested),
        )
        self.reception_health = ReceptionHealth(
            clock=self.clock,
            db=self.db,
            events=self.events,
            channels=self.channels,
            states=self.channel_states,
            failing_s=settings.jobs.reception_failing_s,
        )
        self.channel_troubles = ChannelTroubles(
            clock=self.clock, channels=self.channels, states=self.channel_states
        )
        partitioning = Partitioning(
            clock=self.clock,
            db=self.db,
            min_mib=settings.database_partition_mib,
            metrics=self.metrics.partitions,
        )
        self.retention = Retention(
            name="core.purge",
            clock=self.clock,
            rules=retention_rules(settings),
            partitioning=partitioning,
            purges=[
                MessagePurge(
                    clock=self.clock,
                    message_days=settings.limits.message_days,
                    partitioning=partitioning,
                ).purge,
                # Last: what is deleted before it has become free.
                lambda ctx: ctx.shrink_file(),
            ],
        )
        self.sealed_columns = [*CORE_SEALED, *flatten(hook.register_sealed())]
        self.resealing = Resealing(secrets=self.secrets, columns=self.sealed_columns)
        self.file_fetcher = file_fetching.FileFetcher(
            clock=self.clock,
            secrets=self.secrets,
            settings=settings.media,
            channels=self.channels,
            on_fetched=in_order(hook.on_file_fetched),
        )
        self.file_purge = FilePurge(clock=self.clock, loose_hours=settings.media.loose_hours)
        self.metrics.registry.register(
            ChannelStateMetrics(
                configured=settings.channels,
                label=self.metrics.channels.label,
                find=self.channels.get,
                troubled=self.channel_states.troubled,
                database=self.metrics.database,
            )
        )
        self.channel_outages = ChannelOutages(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            metrics=self.metrics.channels,
            channels=self.channels,
            states=self.channel_states,
            wait_s=exponential(settings.jobs.probe_first_s, 2, settings.jobs.probe_most_s),
            on_unavailable=in_order(hook.on_channel_unavailable),
        )
        self.gates = OutboundGates(
            clock=self.clock,
            db=self.db,
            jobs=self.jobs,
            channels=self.channels,
            states=self.channel_states,
            outages=self.channel_outages,
            metrics=self.metrics.channels,
            settings=settings.jobs,
        )
        retries = delivery_retries(settings.limits)
        self.message_delivery = MessageDelivery(
            clock=self.clock,
            gates=self.gates,
            loader=DeliveryLoader(db=self.db, subscribers=self.subscribers),
            files=self.message_files,
            outcomes=self.message_outcomes,
            retries=retries,
            sender=self.channel_sender,
            preferences=self.subscribers.preferences,
        )
        self.message_editor = MessageEditor(
            clock=self.clock,
            gates=self.gates,
            subscribers=self.subscribers,
            changes=self.messages.changes,
            files=self.message_files,
            retries=retries,
            sender=self.channel_sender,
        )
        self.message_filing = MessageFiling(db=self.db)
        mailing_routes = MailingRoutes(
            clock=self.clock,
            jobs=self.jobs,
            channels=self.channels,
            subscribers=self.subscribers,
            find_stopped=self.channel_states.find_stopped,
        )
        mailing_outcomes = MailingOutcomes(
            clock=self.clock,
            events=self.events,
            subscribers=self.subscribers,
            retries=retries,
            default_lang=settings.default_lang,
            messages=self.message_outcomes,
            routes=mailing_routes,
        )
        self.delivery_reports = DeliveryReports(
            clock=self.clock,
            jobs=self.jobs,
            events=self.events,
            subscribers=self.subscribers,
            outcomes=self.message_outcomes,
            # Batches last, as in `MessageOutcomes.count`.
            counters=[mailing_outcomes, self.batch_counts],
            routes=self.route_progress,
        )
        self.dead_mailings = DeadMailings(
            clock=self.clock,
            gates=self.gates,
            mailings=self.mailings,
            outcomes=mailing_outcomes,
        )
        self.mailing_expansion = MailingExpansion(
            clock=self.clock,
            jobs=self.jobs,
            mailings=self.mailings,
            names=audience_names,
            most=settings.limits.broadcast_recipients,
            on_dead=self.dead_mailings.dead_letter,
        )
        self.mailing_sender = MailingSender(
            clock=self.clock,
            channels=self.channels,
            gates=self.gates,
            recipients=RecipientSender(
                subscribers=self.subscribers,
                limits=message_limits,
                links=link_tracking,
                default_lang=settings.default_lang,
                files=self.message_files,
                sender=self.channel_sender,
            ),
            outcomes=mailing_outcomes,
            mailings=self.mailings,
            retries=retries,
            on_dead=self.dead_mailings.dead_letter,
        )
        self.route_watch = RouteWatch(
            clock=self.clock,
            jobs=self.jobs,
            channels=self.channels,
            mailings=self.mailings,
            routes=mailing_routes,
            find_troubled=self.channel_states.troubled,
        )
        self.ledger_purge = LedgerPurge(
            clock=self.clock, recipient_days=settings.limits.recipient_days
        )
        self.bot_calls = BotCalls(
            clock=self.clock,
            jobs=self.jobs,
            outbox=self.outbox,
            gates=self.gates,
            sender=self.channel_sender,
        )
        self.channel_states.observers.append(self.gates)
        self.dispatcher = InboundDispatcher(
            texts=self.texts,
            typed_answers=TypedAnswers(
                clock=self.clock,
                secrets=self.secrets,
                answer_hours=settings.limits.answer_hours,
            ),
            start_codes=self.start_codes,
            chats=self.subscribers,
            on_project_button=self.messages.button_pressed,
            on_phone=PlatformPhones(subscribers=self.subscribers, contacts=self.contacts).record,
            on_report=self.delivery_reports.record,
            on_answer=self.route_progress.answered,
            on_bot_created=self.channel_requests.record,
        )
        self.inbound = Inbound(
            db=self.db,
            clock=self.clock,
            texts=self.texts,
            channels=self.channels,
            outbox=self.outbox,
            dispatcher=self.dispatcher,
            commands=self.commands,
            metrics=self.metrics.channels,
            tracing=self._tracing,
        )
        self.providers = self._core_providers()
        for section in self._sections.values():
            self.providers.add(section)
        create_plugins(self.plugins, self.plugin_context())
        for objects in hook.register_services():
            for kind, provided in objects.items():
                self.providers.add(provided, kind=kind)
        self.dispatcher.declare(
            [
                *self.conversation.rules(),
                *self.links.rules(),
                *self.consents.rules(),
                *self.member_links.rules(),
                *flatten(hook.register_inbound()),
            ]
        )
        self.receiver = UpdateReceiver(
            clock=self.clock,
            db=self.db,
            channels=self.channels,
            lease_s=settings.jobs.lease_s,
            new_reception=partial(
                BotReceiver,
                clock=self.clock,
                db=self.db,
                secrets=self.secrets,
                settings=settings,
                channels=self.channels,
                states=self.channel_states,
                health=self.reception_health,
            ),
        )
        self.endpoints: list[Endpoint] = [
            *(endpoint for router in CORE_ROUTERS for endpoint in router.endpoints),
            *flatten(hook.register_endpoints()),
        ]
        check_endpoints(self.endpoints)
        self.endpoints = [endpoint.bound(self.providers) for endpoint in self.endpoints]
        #: What `stop` undoes, the last first.
        self._started = AsyncExitStack()
        self._is_started = False

    def openapi(self, endpoints: Sequence[Endpoint]) -> dict[str, Any]:
        """The OpenAPI document of some of the service's endpoints, and of its events."""
        from msgsvc_core.http.openapi import openapi  # noqa: PLC0415 - workers serve no API

        settings = self.settings
        return openapi(
            endpoints,
            settings.base_url,
            settings.languages,
            events=self.events.catalogue.values(),
            errors=self.errors,
            errors_url=settings.errors_url,
            header_prefix=settings.header_prefix,
        )

    @cached_property
    def app(self) -> ASGIApp:
        """The ASGI application; served directly, its lifespan starts and stops the service.

        Mounted in another application, use `service.lifespan` (or `async with service`) there.
        """
        from msgsvc_core.http.app import build_app, home_of  # noqa: PLC0415 - workers serve no API
        from msgsvc_core.http.authentication import Authentication  # noqa: PLC0415 - see above
        from msgsvc_core.http.dispatcher import EndpointDispatcher  # noqa: PLC0415 - see above
        from msgsvc_core.http.documentation import (  # noqa: PLC0415 - see above
            NotFoundPage,
            documentation_routes,
        )
        from msgsvc_core.http.idempotency import Idempotency  # noqa: PLC0415 - see above
        from msgsvc_core.http.metrics import metrics_routes, operators_of  # noqa: PLC0415 - see above
        from msgsvc_core.http.operations import Readiness, operation_routes  # noqa: PLC0415

        settings, requests = self.settings, self.metrics.requests
        edge = EndpointDispatcher(
            db=self.db,
            secrets=self.secrets,
            authentication=Authentication(
                projects=self.projects,
                limiter=self.limiter,
                requests_per_minute=settings.limits.requests_per_minute,
                metrics=requests,
            ),
            idempotency=Idempotency(
                self.db, self.clock, self.secrets, keep_hours=settings.limits.idempotency_hours
            ),
            write_audit=self.audit.write_call,
            settings=settings,
        )
        readiness = Readiness(
            db=self.db,
            clock=self.clock,
            jobs=self.jobs,
            channels=self.channels,
            states=self.channel_states,
            limiter=self.limiter,
            has_redis=settings.redis_url is not None,
            keys_are_lost=lambda: self.keys_are_lost,
            is_quarantined=settings.quarantine,
            is_draining=lambda: self.is_draining,
        )
        pages = flatten(self.plugins.hook.register_pages())
        home = home_of(pages)
        return build_app(
            endpoints=self.endpoints,
            routes=[
                *operation_routes(readiness, operators_of(settings.metrics)),
                *metrics_routes(self.metrics, settings.metrics),
                *documentation_routes(
                    self.endpoints,
                    self.errors,
                    lambda: self.openapi(self.endpoints),
                    home,
                    is_open=settings.api_docs,
                ),
                *channel_routes(
                    channels=self.channels,
                    inbound=self.inbound,
                    limiter=self.limiter,
                    qr_per_minute=settings.limits.qr_per_minute_per_address,
                    max_body_bytes=settings.server.max_body_bytes,
                    is_quarantined=settings.quarantine,
                ),
                *file_routes(self.files),
                *branding_routes(self.db),
                *self._preferences_pages().routes(),
                *ButtonPagesRoutes(
                    db=self.db,
                    texts=self.texts,
                    projects=self.projects,
                    channels=self.channels,
                    pages=self.button_pages,
                    press=self.inbound.press,
                ).routes(),
                *pages,
            ],
            edge=edge,
            not_found=NotFoundPage(self.texts, settings.default_lang),
            metrics=requests,
            settings=settings,
            lifespan=self.lifespan,
            tracing=self._tracing,
        )

    def _preferences_pages(self) -> PreferencesPages:
        preferences = Preferences(
            links=self.subscribers.preferences,
            projects=self.projects,
            subscribers=self.subscribers,
            permissions=self.permissions,
            channels=self.channels,
            languages=self.settings.languages,
        )
        return PreferencesPages(db=self.db, texts=self.texts, preferences=preferences)

    def explainers(self) -> "list[Explainer]":
        """Explains ids to operators, see `msgsvc explain`: the core's kinds, then those of plugins."""
        from msgsvc_core.channels.explaining import (  # noqa: PLC0415 - servers explain nothing
            JobExplainer,
            WaitingJobs,
        )
        from msgsvc_core.mailings.explaining import MailingExplainer  # noqa: PLC0415 - see above
        from msgsvc_core.messages.explaining import MessageExplainer  # noqa: PLC0415 - see above
        from msgsvc_core.telemetry.explanations import Explainer  # noqa: PLC0415 - see above

        of_plugins: list[Explainer] = flatten(self.plugins.hook.register_explainers())
        waiting = WaitingJobs(
            clock=self.clock,
            channels=self.channels,
            states=self.channel_states,
            known=lambda: {spec.name for spec in self.job_specs},
        )
        messages = MessageExplainer(
            clock=self.clock,
            projects=self.projects,
            subscribers=self.subscribers,
            channels=self.channels,
            events=self.events,
            waiting=waiting,
            max_attempts=self.settings.limits.delivery_attempts,
            follow_events=[each.follow_events for each in of_plugins if each.follow_events],
        )
        mailings = MailingExplainer(clock=self.clock, find=self.mailings.find_any)
        jobs = JobExplainer(clock=self.clock, waiting=waiting)
        return [
            Explainer("msg", messages.explain),
            Explainer("job", mailings.explain),
            Explainer("job", jobs.explain),
            *of_plugins,
        ]

    @cached_property
    def media(self) -> MediaFiles:
        """Fetches files of messages, for channels that hand them to their platform."""
        return MediaFiles(clock=self.clock, settings=self.settings.media, files=self.files)

    def section(self, model: type[S]) -> S:
        """A plugin's settings, by their type."""
        for section in self._sections.values():
            if isinstance(section, model):
                return section
        raise LookupError(f"no loaded plugin has settings of type {model.__qualname__}")

    def get(self, kind: type[T]) -> T:
        """The one object of that type that a plugin registered (hook `register_services`)."""
        return self.providers.get(kind)

    async def open_ticket(self, tx: Tx, request: TicketRequest) -> str | None:
        """Has a ticket opened; returns its id, or None where no loaded plugin keeps tickets."""
        opening = self.plugins.hook.open_ticket(tx=tx, request=request)
        return None if opening is None else str(await opening)

    def on(self, event_name: str) -> Callable[[Listener], Listener]:
        """Decorates a coroutine function that is called with every `Event` of that name.

        It runs after the commit, in the process where the event happened. A failure is logged, and
        not tried again: for certain delivery across processes use webhooks or the event feed.
        """

        def listen(listener: Listener) -> Listener:
            self.events.listen(event_name, listener)
            return listener

        return listen

    @cached_property
    def migrations(self) -> list[MigrationSource]:
        """Whose tables there are, the core's first."""
        return [CORE_MIGRATIONS, *self.plugins.hook.register_migrations()]

    @cached_property
    def job_specs(self) -> list[JobSpec]:
        plugins = flatten(self.plugins.hook.register_jobs())
        own = [
            *self.bot_calls.specs,
            self.message_delivery.spec,
            self.message_editor.spec,
            self.delivery_reports.spec,
            self.route_progress.spec,
            self.batch_counts.spec,
            self.erasure.spec,
            self.bulk_actions.spec,
            self.people_imports.spec,
            self.tags.spec,
            self.language_mapping.spec,
            self.retention.spec,
            self.resealing.spec,
        ]
        mailing = [
            self.mailing_expansion.spec,
            self.mailing_sender.spec,
            self.route_watch.spec,
            self.ledger_purge.spec,
        ]
        files = [self.file_fetcher.spec, self.file_purge.spec]
        channels = [
            self.channel_states.spec,
            self.channel_outages.spec,
            self.channel_requests.spec,
        ]
        filing = [self.message_filing.spec] if self.db.dialect == "sqlite" else []
        return [*own, *mailing, *files, *filing, *channels, *plugins]

    @cached_property
    def planned_messages(self) -> list[PlannedMessages]:
        """What plugins send later without a job, see `msgsvc outbox`."""
        return flatten(self.plugins.hook.register_planned_messages())

    @cached_property
    def lane_specs(self) -> list[LaneSpec]:
        core = [
            LaneSpec("default", concurrency=8),
            self.gates.lanes,
            file_fetching.LANES,
        ]
        return [*core, *flatten(self.plugins.hook.register_lanes())]

    def _session_name(self) -> str:
        # Of PostgreSQL only: it reads the scripts.
        of_postgres = self.settings.database_url.startswith("postgresql")
        return session_name(self.migrations) if of_postgres else "msgsvc"

    async def migrate(self, phase: Phase | None = None) -> list[str]:
        """Brings the database up to date, or applies one half of the migrations; returns those that were
        applied. Raises `DatabaseTooNew`, `MigrationRefused`, `DatabaseUnavailable`."""
        return await migrate(self.settings.database_url, self.migrations, phase)

    async def open_database(self) -> None:
        """Connects to the database only. Raises `MigrationsPending`, `DatabaseTooNew`, `DatabaseUnavailable`,
        and `UnfinishedCopy` if it is a copy that was interrupted.

        SQLite is migrated automatically; PostgreSQL, which other processes may be using, by `msgsvc
        migrate`. Steps that contract may be left, and a newer release may have expanded the database.
        """
        if self.db.dialect == "sqlite" and not self.db.is_in_memory:
            await self._migrate_file()
        await self.db.connect()
        try:
            if self.db.dialect == "postgresql":
                await self._check_schema()
            async with self.db.read() as tx:
                await check_finished(tx)
        except BaseException:
            await self.db.disconnect()
            raise

    async def _migrate_file(self) -> None:
        """What contracts is left to a later start if another process has the file open."""
        try:
            await self.migrate()
        except MigrationRefused as refusal:
            await self.migrate("expand")
            log.warning("contract_refused", error=str(refusal))

    async def _check_schema(self) -> None:
        """When connected: a migration that contracts now sees this process, or this process what it did."""
        async with self.db.transaction() as tx:
            schema = await read_schema_in(tx, self.migrations)
        if needed := [step.name for each in schema for step in each.needed]:
            raise MigrationsPending(
                f"the database lacks {', '.join(needed)}; run `msgsvc migrate` first"
            )
        if later := [step.name for each in schema for step in each.pending]:
            log.info("contract_pending", migrations=later)
        if ahead := [f"{each.owner}:{step.revision}" for each in schema for step in each.ahead]:
            log.warning("database_is_ahead", migrations=ahead)

    async def start(self, role: Role = "serve") -> None:
        """Opens the database and starts; with role `work`, job processing only, as `msgsvc worker` does.

        Raises what `open_database` and a plugin's `on_start` raise, and `SettingsError` when a dependency
        of `jobs.runner` is not installed; everything is closed again then. Starting twice raises
        `RuntimeError`: two sets of tasks would share its parts.
        """
        if self._is_started:
            raise RuntimeError("the service has been started: stop it first, or make another one")
        self._is_started = True
        try:
            await self._start(role)
        except BaseException:
            self._is_started = False
            raise

    async def _start(self, role: Role) -> None:
        async with AsyncExitStack() as undo:
            await self.open_database()
            undo.push_async_callback(self.db.disconnect)
            if self.settings.quarantine:
                log.warning("quarantine")
            await self._check_key_canary()
            undo.push_async_callback(self.limiter.close)
            await self.limiter.open()
            undo.push_async_callback(self._close_media)
            undo.push_async_callback(self.channels.close)
            undo.push_async_callback(self.channel_sync.stop)
            await self.channel_sync.start()
            await self.events.start()
            undo.push_async_callback(self.events.stop)
            undo.push_async_callback(self._stop_plugins)
            await await_in_order(self.plugins.hook.on_start())
            await start_jobs(
                self._new_runner,
                queue=self.jobs,
                clock=self.clock,
                settings=self.settings,
                undo=undo,
                role=role,
            )
            if role == "serve":
                undo.push_async_callback(self.projects.key_uses.stop)
                await self.projects.key_uses.start()
                if not self.settings.quarantine:
                    await self.receiver.start()
                    undo.push_async_callback(self.receiver.stop)
            self._started = undo.pop_all()

    async def _check_key_canary(self) -> None:
        async with self.db.read() as tx:
            readable = await key_canary.is_readable(tx, self.secrets)
        if readable is None:
            async with self.db.transaction() as tx:
                await key_canary.plant(tx, self.secrets)
        elif not readable:
            # Most features work without the old keys; docs/operating.md describes the recovery.
            self.keys_are_lost = True
            log.error("secret_keys_lost")

    def begin_drain(self) -> None:
        """Has `/readyz` answer 503 while everything else goes on. Call it some seconds before
        `begin_shutdown`, where a balancer sends requests to several processes."""
        self.is_draining = True
        log.info("draining")

    def begin_shutdown(self) -> None:
        """Ends requests that wait for something to happen, e.g. long polls. Call it at shutdown, before
        waiting for open requests; `stop` calls it too."""
        try:
            self.plugins.hook.on_stopping()
        except Exception:
            # The edge to plugins: the stop goes on.
            log.exception("plugin_did_not_stop")

    async def stop(self) -> None:
        """Ends the work in the order in which nothing is lost, and closes everything."""
        self.begin_shutdown()
        started, self._started = self._started, AsyncExitStack()
        try:
            await started.aclose()
        finally:
            self._is_started = False

    def _core_providers(self) -> Providers:
        """What handlers may ask for by type: the core's parts."""
        found = Providers()
        found.add(self.clock, kind=Clock)
        found.add(self.limiter, kind=Limiter)
        parts = (
            self.settings,
            self.db,
            self.secrets,
            self.texts,
            self.errors,
            self.metrics,
            self.jobs,
            self.outbox,
            self.job_admin,
            self.events,
            self.billing,
            self.projects,
            self.projects.branding,
            self.subscribers,
            self.bulk_actions,
            self.contacts,
            self.people,
            self.people_imports,
            self.personal_data,
            self.tags,
            self.permissions,
            self.links,
            self.consents,
            self.greetings,
            self.mini_apps,
            self.tracked_events,
            self.project_overview,
            self.accounts,
            self.members,
            self.owner_protection,
            self.member_links,
            self.messages,
            self.templates,
            self.routes,
            self.batches,
            self.mailings,
            self.files,
            self.channels,
            self.own_channels,
            self.channel_requests,
            self.channel_states,
            self.channel_outages,
            self.reception_health,
            self.channel_troubles,
            self.inbound,
            self.commands,
        )
        for part in parts:
            found.add(part)
        found.add(
            MessageChoices(
                routes=self.routes,
                tags=self.tags,
                templates=self.templates,
                permissions=self.permissions,
                channels=self.channels,
                max_templates=self.settings.limits.templates,
                default_lang=self.settings.default_lang,
            )
        )
        found.add(MessagePreviews(mailings=self.mailings, messages=self.messages))
        return found

    def _channel_context(self) -> ChannelContext:
        return ChannelContext(
            clock=self.clock,
            db=self.db,
            secrets=self.secrets,
            base_url=self.settings.base_url,
            media=lambda: self.media,
            is_own_address=self.files.is_own_address,
            provided=self.get,
            last_update_ms=self._last_update_ms,
        )

    async def _last_update_ms(self, channel: str, chat_id: str) -> int | None:
        return await self.inbound.last_update_ms(channel, chat_id)

    def plugin_context(self) -> PluginContext:
        """The parts that plugins get."""
        return PluginContext(
            clock=self.clock,
            db=self.db,
            config=self.settings,
            secrets=self.secrets,
            limiter=self.limiter,
            texts=self.texts,
            metrics=self.metrics,
            jobs=self.jobs,
            events=self.events,
            billing=self.billing,
            projects=self.projects,
            channels=self.channels,
            outbox=self.outbox,
            files=self.files,
            subscribers=self.subscribers,
            contacts=self.contacts,
            tags=self.tags,
            permissions=self.permissions,
            members=self.members,
            messages=self.messages,
            templates=self.templates,
            routes=self.routes,
            mailings=self.mailings,
            media=lambda: self.media,
            sections=self._sections,
            peers=Peers(
                tickets=TicketDesk(
                    open_ticket=self.open_ticket,
                    forget_source=in_order(self.plugins.hook.forget_source),
                    is_open=lambda: bool(self.plugins.hook.open_ticket.get_hookimpls()),
                ),
                accounts=self.accounts,
                sign_ins=SignIns(source=self.plugins.hook.register_sign_ins),
                areas=self._dashboard_areas,
                endpoints=lambda: self.endpoints,
            ),
        )

    def _dashboard_areas(self) -> list[Pages]:
        """Every plugin's pages, with what their handlers ask for by type."""
        found = flatten(self.plugins.hook.register_dashboard())
        return [area.bound(self.providers) for area in found]

    async def _quote(self, tx: Tx, project_id: str, operation: str) -> int:
        pricing = self.plugins.hook.quote(tx=tx, project_id=project_id, operation=operation)
        return 0 if pricing is None else int(await pricing)

    async def _decide_plan(self, tx: Tx, account_id: str) -> Plan | None:
        deciding = self.plugins.hook.decide_plan(tx=tx, account_id=account_id)
        return None if deciding is None else await deciding

    async def _email_of(self, tx: Tx, account_id: str) -> str | None:
        account = (await self.accounts.find_many(tx, [account_id])).get(account_id)
        return None if account is None else account.email

    async def _refresh_channels(self) -> None:
        await self.channel_sync.refresh()

    async def _receive_update(self, channel_key: str, update: Update) -> None:
        await self.inbound.receive(channel_key, update)

    async def _apply_channel_health(
        self, channel: Channel, health: ChannelHealth, asked_at_ms: int
    ) -> bool:
        return await self.channel_states.apply_health(channel, health, asked_at_ms=asked_at_ms)

    async def _erase_in_plugins(self, ctx: JobContext, project_id: str, subscriber_id: str) -> None:
        hook = self.plugins.hook.erase_subscriber
        await await_in_order(hook(project_id=project_id, subscriber_id=subscriber_id))

    def _new_runner(self, *, pass_on: Callable[[str], None] | None = None) -> LaneRunner:
        return LaneRunner(
            self.job_specs,
            self.lane_specs,
            db=self.db,
            clock=self.clock,
            queue=self.jobs,
            settings=self.settings.jobs,
            table_owners=[source.owner for source in self.migrations],
            pass_on=pass_on,
            tracing=self._tracing,
        )

    def _new_limiter(self, *, server_time: bool) -> Limiter:
        """In Redis if there is one; by its time, unless someone moves ours."""
        url = self.settings.redis_url
        if url is None:
            return DatabaseLimiter(self.db, self.clock)
        # Megabytes of memory that a process without Redis does not need.
        from msgsvc_core.limits.redis import RedisLimiter, redis_client  # noqa: PLC0415 - see above

        client = redis_client(url.get_secret_value())
        return RedisLimiter(client, self.clock, server_time=server_time)

    async def _close_media(self) -> None:
        if "media" in self.__dict__:
            await self.media.close()

    async def _stop_plugins(self) -> None:
        for stopped in self.plugins.hook.on_stop():
            try:
                await stopped
            except Exception:
                log.exception("plugin_did_not_stop")

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Fits `lifespan=` of a Starlette or FastAPI application that mounts `service.app`."""
        async with self:
            yield

    async def __aenter__(self) -> "Service":
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


def _tracing_by(settings: Settings) -> Tracing | None:
    if not settings.tracing.enabled:
        return None
    from msgsvc_core.telemetry.otel import OtelTracing  # noqa: PLC0415 - an optional package

    return OtelTracing()
