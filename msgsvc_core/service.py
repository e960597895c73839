"""The composition root: one `Service` owns one of everything. There are no globals.

service = Service(load_settings(Path("msgsvc.toml")))
app = service.app                      # an ASGI application with its lifespan

async with service:                    # or started by hand, inside another application
    await service.messages.send(project_id, subscriber_id="sub_...", text="Hello")
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import structlog
from starlette.types import ASGIApp

from msgsvc_core.accounts import (
    AccountLinks,
    Accounts,
    Audit,
    MessengerSignIn,
    SecondFactor,
    SignIn,
    Team,
)
from msgsvc_core.api.endpoint import Endpoint, check_endpoints
from msgsvc_core.billing import Charge
from msgsvc_core.channels import Channels, Inbound
from msgsvc_core.channels.calls import CHANNEL_LANES
from msgsvc_core.channels.calls import SPEC as CALL_JOB
from msgsvc_core.channels.lines import Lines
from msgsvc_core.channels.outages import ChannelOutages, probe_spec
from msgsvc_core.channels.project_channels.routes import router as channels_router
from msgsvc_core.channels.project_channels.service import OwnChannels
from msgsvc_core.channels.reception_health import ReceptionHealth
from msgsvc_core.channels.states import ChannelStates, check_job
from msgsvc_core.config.settings import Section, Settings, read_sections
from msgsvc_core.core_parts import CORE_EVENTS
from msgsvc_core.db import (
    CORE_MIGRATIONS,
    Database,
    MigrationSource,
    Tx,
    migrate,
    pending_revisions,
)
from msgsvc_core.events import Events, Listener
from msgsvc_core.events.routes import router as events_router
from msgsvc_core.files import Files
from msgsvc_core.files import fetching as file_fetching
from msgsvc_core.files import purging as file_purging
from msgsvc_core.files.routes import router as files_router
from msgsvc_core.jobs import JobQueue, JobSpec, LaneSpec
from msgsvc_core.jobs.engine import Role, start_jobs
from msgsvc_core.jobs.retention import PURGE_JOB
from msgsvc_core.kernel.clock import Clock, SystemClock
from msgsvc_core.kernel.errors import CORE_ERRORS, ErrorCatalogue
from msgsvc_core.kernel.hooks import answers, in_turn
from msgsvc_core.kernel.i18n import CORE, Texts
from msgsvc_core.limits import DatabaseLimiter, Limiter
from msgsvc_core.mailings import Mailings
from msgsvc_core.mailings.expansion import SPEC as EXPAND_JOB
from msgsvc_core.mailings.purging import SPEC as PURGE_LEDGERS_JOB
from msgsvc_core.mailings.sending import SPEC as MAILING_JOB
from msgsvc_core.members import Members
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.routes import router as members_router
from msgsvc_core.messages import Messages
from msgsvc_core.messages.batches import Batches
from msgsvc_core.messages.batches.counting import SPEC as BATCH_JOB
from msgsvc_core.messages.batches.routes import router as batches_router
from msgsvc_core.messages.changing import SPEC as CHANGE_JOB
from msgsvc_core.messages.delivery import SPEC as DELIVER_JOB
from msgsvc_core.messages.filing import SPEC as FILE_JOB
from msgsvc_core.messages.routes import router as messages_router
from msgsvc_core.messages.templates import Templates
from msgsvc_core.messages.templates.routes import router as templates_router
from msgsvc_core.plugins.loading import load_plugins, package
from msgsvc_core.plugins.tickets import TicketRequest
from msgsvc_core.projects import Projects
from msgsvc_core.projects.routes import router as projects_router
from msgsvc_core.security import key_canary
from msgsvc_core.security.secret_box import SecretBox
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.subscribers.consent import Consents
from msgsvc_core.subscribers.conversation import Conversation
from msgsvc_core.subscribers.erasing import SPEC as ERASE_JOB
from msgsvc_core.subscribers.export_routes import router as export_router
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.leaving_routes import router as leaving_router
from msgsvc_core.subscribers.links import SubscriptionLinks
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.permissions.routes import router as permissions_router
from msgsvc_core.subscribers.routes import router as subscribers_router
from msgsvc_core.subscribers.tags import Tags
from msgsvc_core.subscribers.tags.routes import router as tags_router
from msgsvc_core.telemetry import Metrics
from msgsvc_core.telemetry.logs import configure_unless_done

if TYPE_CHECKING:
    from msgsvc_core.files.media import MediaFiles

T = TypeVar("T")
S = TypeVar("S", bound=Section)

CORE_LOCALE = Path(__file__).parent / "locale"
CORE_LANES = (LaneSpec("default", concurrency=8), CHANNEL_LANES, file_fetching.LANES)
log = structlog.get_logger(__name__)

CORE_ROUTERS = (
    projects_router,
    channels_router,
    subscribers_router,
    tags_router,
    permissions_router,
    leaving_router,
    export_router,
    messages_router,
    batches_router,
    templates_router,
    files_router,
    events_router,
    members_router,
)


class MigrationsPending(Exception):
    """The database is older than the code. `msgsvc migrate` brings it up to date."""


class Service:
    """Everything a deployment of msgsvc is made of.

    `extra_plugins` are plugin objects by name, beside those that `settings.plugins` names; tests and
    embedders use it for plugins that are not installed.
    """

    #: Whether the start found that the database holds what none of `secret_keys` reads.
    keys_are_lost = False

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        extra_plugins: Iterable[tuple[str, Any]] = (),
    ) -> None:
        configure_unless_done()
        self.settings = settings
        self.clock = clock or SystemClock()
        self.plugins = load_plugins(settings.plugins, extra_plugins)
        hook = self.plugins.hook
        #: Asked for every send, so that who bills nothing pays nothing for it.
        self._is_admitting = bool(hook.admit.get_hookimpls())
        self._sections = read_sections(settings, hook.register_settings())
        self.db = Database(
            settings.database_url,
            pool_size=settings.database_pool,
            synchronous=settings.sqlite_synchronous,
        )
        self.metrics = Metrics(self)
        self.secrets = SecretBox([key.get_secret_value() for key in settings.secret_keys])
        self.limiter = self._new_limiter(server_time=clock is None)
        self.errors = ErrorCatalogue([*CORE_ERRORS, *answers(hook.register_errors())])
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
        self.jobs = JobQueue(self.clock)
        self.events = Events(self, [*CORE_EVENTS, *answers(hook.register_events())])
        self.projects = Projects(self.db, self.clock)
        self.subscribers = Subscribers(self)
        self.tags = Tags(self)
        self.permissions = Permissions(self)
        self.links = SubscriptionLinks(self)
        self.consents = Consents(self)
        self.greetings = Greetings(self)
        self.accounts = Accounts(self)
        self.account_links = AccountLinks(self)
        self.audit = Audit(self)
        self.second_factor = SecondFactor(self)
        self.sign_in = SignIn(self)
        self.messenger_sign_in = MessengerSignIn(self)
        self.team = Team(self)
        self.members = Members(self)
        self.member_links = MemberLinks(self)
        self.conversation = Conversation(self)
        self.messages = Messages(self)
        self.templates = Templates(self)
        self.batches = Batches(self)
        self.mailings = Mailings(self)
        self.files = Files(self)
        self.channels = Channels(self, answers(hook.register_channel_kinds()))
        self.own_channels = OwnChannels(self)
        self.channel_states = ChannelStates(self)
        self.channel_outages = ChannelOutages(self)
        self.lines = Lines(self)
        self._registered: dict[type, Any] = {}
        for objects in hook.register_services(service=self):
            self._registered.update(objects)
        self.inbound = Inbound(
            self,
            [
                *self.conversation.rules(),
                *self.links.rules(),
                *self.consents.rules(),
                *self.member_links.rules(),
                *self.messenger_sign_in.rules(),
                *answers(hook.register_inbound(service=self)),
            ],
        )
        self.endpoints: list[Endpoint] = [
            *(endpoint for router in CORE_ROUTERS for endpoint in router.endpoints),
            *answers(hook.register_endpoints(service=self)),
        ]
        check_endpoints(self.endpoints)
        #: What `stop` undoes, the last first.
        self._started = AsyncExitStack()
        self._is_started = False

    @cached_property
    def app(self) -> ASGIApp:
        """The ASGI application; served directly, its lifespan starts and stops the service.

        Mounted in another application, use `service.lifespan` (or `async with service`) there.
        """
        from msgsvc_core.http.app import (  # noqa: PLC0415 - the app is built from a service
            build_app,
        )

        return build_app(self)

    @cached_property
    def media(self) -> "MediaFiles":
        """Fetches files of messages, for channels that hand them to their platform."""
        # aiohttp is megabytes of memory that most services use for no file.
        from msgsvc_core.files.media import MediaFiles  # noqa: PLC0415 - loaded by who needs it

        return MediaFiles(self)

    @cached_property
    def reception_health(self) -> ReceptionHealth:
        """Which bots receive nothing, since when and why."""
        return ReceptionHealth(self)

    def section(self, model: type[S]) -> S:
        """A plugin's settings, by their type."""
        for section in self._sections.values():
            if isinstance(section, model):
                return section
        raise LookupError(f"no loaded plugin has settings of type {model.__qualname__}")

    def get(self, kind: type[T]) -> T:
        """The one object of that type that a plugin registered (hook `register_services`)."""
        try:
            found: T = self._registered[kind]
        except KeyError:
            raise LookupError(f"no loaded plugin provides {kind.__qualname__}") from None
        return found

    async def charge(self, tx: Tx, charge: Charge) -> None:
        """Tells whoever keeps accounts of a paid operation. Raises `BillingBlocked` if they refuse it."""
        await in_turn(self.plugins.hook.charge(service=self, tx=tx, charge=charge))

    async def admit(self, project_id: str, operation: str, tx: Tx | None = None) -> None:
        """Raises `BillingBlocked` where a paid operation would be refused that is not charged now.

        `tx` is the caller's transaction, if there is one.
        """
        if self._is_admitting:
            await in_turn(
                self.plugins.hook.admit(
                    service=self, project_id=project_id, operation=operation, tx=tx
                )
            )

    async def price(self, tx: Tx, project_id: str, operation: str) -> int:
        """Credits that one of a paid operation costs a project; 0 where nothing is billed."""
        pricing = self.plugins.hook.price(
            service=self, tx=tx, project_id=project_id, operation=operation
        )
        return 0 if pricing is None else int(await pricing)

    async def open_ticket(self, tx: Tx, request: TicketRequest) -> str | None:
        """Has a ticket opened; returns its id, or None where no loaded plugin keeps tickets."""
        opening = self.plugins.hook.open_ticket(service=self, tx=tx, request=request)
        return None if opening is None else str(await opening)

    async def forget_source(self, tx: Tx, project_id: str, source: str, source_id: str) -> None:
        """Has what tickets copied of their source taken out of them."""
        hook = self.plugins.hook.forget_source
        await in_turn(
            hook(service=self, tx=tx, project_id=project_id, source=source, source_id=source_id)
        )

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
        plugins = answers(self.plugins.hook.register_jobs(service=self))
        own = [CALL_JOB, DELIVER_JOB, CHANGE_JOB, BATCH_JOB, ERASE_JOB, PURGE_JOB]
        mailing = [EXPAND_JOB, MAILING_JOB, PURGE_LEDGERS_JOB]
        files = [file_fetching.SPEC, file_purging.SPEC]
        filing = [FILE_JOB] if self.db.dialect == "sqlite" else []
        return [*own, *mailing, *files, *filing, check_job(self), probe_spec(self), *plugins]

    @cached_property
    def lane_specs(self) -> list[LaneSpec]:
        return [*CORE_LANES, *answers(self.plugins.hook.register_lanes())]

    async def migrate(self) -> list[str]:
        """Brings the database up to date; returns the migrations that were applied."""
        return await migrate(self.settings.database_url, self.migrations)

    async def open_database(self) -> None:
        """Connects to the database alone. Raises `MigrationsPending`, `DatabaseUnavailable`.

        SQLite is migrated by itself; PostgreSQL, which others may be using, by `msgsvc migrate`.
        """
        if self.db.dialect == "sqlite":
            await self.migrate()
        elif pending := await pending_revisions(self.settings.database_url, self.migrations):
            raise MigrationsPending(
                f"the database lacks {', '.join(pending)}; run `msgsvc migrate` first"
            )
        await self.db.connect()

    async def start(self, role: Role = "serve") -> None:
        """Opens the database and begins to work; as `work`, on jobs alone, as `msgsvc worker` does.

        Raises what `open_database` and a plugin's `on_start` raise, and `SettingsError` when what
        `jobs.runner` needs is not installed; then it leaves nothing open. A service that has been
        started, or is being started, raises `RuntimeError`: two sets of tasks would share its parts.
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
            await self._look_for_lost_keys()
            undo.push_async_callback(self.limiter.close)
            await self.limiter.open()
            undo.push_async_callback(self._close_media)
            undo.push_async_callback(self.channels.close)
            await self.channels.open()
            await self.events.start()
            undo.push_async_callback(self.events.stop)
            undo.push_async_callback(self._stop_plugins)
            await in_turn(self.plugins.hook.on_start(service=self))
            await start_jobs(self, undo, role)
            if role == "serve":
                undo.push_async_callback(self.projects.key_uses.stop)
                await self.projects.key_uses.start()
                await self.channels.start()
                undo.push_async_callback(self.channels.stop_receiving)
            self._started = undo.pop_all()

    async def _look_for_lost_keys(self) -> None:
        async with self.db.read() as tx:
            readable = await key_canary.is_readable(tx, self.secrets)
        if readable is None:
            async with self.db.transaction() as tx:
                await key_canary.plant(tx, self.secrets)
        elif not readable:
            # Most goes on without the old keys; docs/operating.md says what to do.
            self.keys_are_lost = True
            log.error("secret_keys_lost")

    def begin_stop(self) -> None:
        """Has requests end that wait for something to happen, e.g. long polls. Call it when the server is
        told to stop, before it waits for its open requests; `stop` calls it too."""
        try:
            self.plugins.hook.on_stopping(service=self)
        except Exception:
            # The edge to plugins: the stop goes on.
            log.exception("plugin_did_not_stop")

    async def stop(self) -> None:
        """Ends the work in the order in which nothing is lost, and closes everything."""
        self.begin_stop()
        started, self._started = self._started, AsyncExitStack()
        try:
            await started.aclose()
        finally:
            self._is_started = False

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
        for stopped in self.plugins.hook.on_stop(service=self):
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
