"""The composition root: one `Service` owns one of everything. There are no globals.

service = Service(load_settings(Path("msgsvc.toml")))
app = service.app                      # an ASGI application with its lifespan

async with service:                    # or started by hand, inside another application
    await service.messages.send(project_id, subscriber_id="sub_...", text="Hello")

What it is made of is in the `part.py` of each package: see `msgsvc_core/parts.py`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from pluggy import HookRelay, PluginManager
from starlette.types import ASGIApp

from msgsvc_core import core_parts
from msgsvc_core.api.endpoint import Endpoint, check_endpoints
from msgsvc_core.channels.inbound.dispatch import InboundDispatcher
from msgsvc_core.config.sections import Section
from msgsvc_core.config.settings import Settings, read_sections
from msgsvc_core.db import CORE_MIGRATIONS, Database, MigrationSource, Phase, migrate
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.db.opening import open_database
from msgsvc_core.db.served_file import ServedFile
from msgsvc_core.db.sessions import session_name
from msgsvc_core.events import Listener
from msgsvc_core.jobs import JobQueue, JobSpec, LaneSpec
from msgsvc_core.jobs.admin import JobAdmin
from msgsvc_core.jobs.engine import Role
from msgsvc_core.jobs.runner import LaneRunner
from msgsvc_core.kernel.clock import Clock, SystemClock
from msgsvc_core.kernel.hooks import flatten
from msgsvc_core.kernel.providers import Providers
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.lifecycle import reads_its_secrets, start_parts
from msgsvc_core.limits import Limiter
from msgsvc_core.limits.choice import new_limiter
from msgsvc_core.named_parts import NamedParts
from msgsvc_core.parts import build_parts
from msgsvc_core.plugins.audit import COMMANDS
from msgsvc_core.plugins.context import Peers, PluginContext
from msgsvc_core.plugins.loading import create_plugins, load_plugins
from msgsvc_core.plugins.planned import PlannedMessages
from msgsvc_core.security.secret_box import SecretBox
from msgsvc_core.telemetry.logs import configure_unless_done

if TYPE_CHECKING:
    from msgsvc_core.telemetry.explanations import Explainer

T = TypeVar("T")
S = TypeVar("S", bound=Section)

log = structlog.get_logger(__name__)


class Service(NamedParts):
    """Everything a deployment of msgsvc is made of.

    `extra_plugins` are plugin objects by name, beside those that `settings.plugins` names; tests and
    embedders use it for plugins that are not installed. `tracing` records spans, by default as `settings`
    say. `database` replaces that of `settings.database_url`; its schema is the caller's business.
    """

    #: Whether the start found that the database holds what none of `secret_keys` reads.
    keys_are_lost = False

    #: Whether `/readyz` tells balancers to send requests elsewhere, see `begin_drain`.
    is_draining = False

    def __init__(
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
        self.clock = clock or SystemClock()
        self._tracing = tracing or _tracing_by(settings)
        self.plugins = load_plugins(
            settings.loaded_plugins, extra_plugins, folder=settings.plugins_dir
        )
        self._sections = read_sections(settings, self.plugins.hook.register_settings())
        self.db = database or Database(
            settings.database_url,
            pool_size=settings.database_pool,
            synchronous=settings.sqlite_synchronous,
            session=self._session_name(),
            direct_url=settings.database_direct_url,
        )
        self.secrets = SecretBox([key.get_secret_value() for key in settings.secret_keys])
        self.limiter = new_limiter(
            settings.redis_url, db=self.db, clock=self.clock, server_time=clock is None
        )
        self.jobs = JobQueue(self.clock)
        self.metrics = core_parts.new_metrics(
            settings=settings,
            clock=self.clock,
            db=self.db,
            jobs=self.jobs,
            limiter=self.limiter,
            job_specs=lambda: self.job_specs,
            lane_specs=lambda: self.lane_specs,
        )
        self._add_infrastructure()
        self._built = build_parts(core_parts.CORE_PARTS, self.providers)
        self._name_parts(self.get)
        self._add_plugins()
        #: What `stop` undoes, the last first.
        self._started = AsyncExitStack()
        self._is_started = False

    def _add_infrastructure(self) -> None:
        """What is below the core's parts, which they ask for by type."""
        hook = self.plugins.hook
        self.job_admin = JobAdmin(queue=self.jobs, clock=self.clock, specs=lambda: self.job_specs)
        self.providers = Providers()
        by_kind: dict[Any, Any] = {
            Clock: self.clock,
            Limiter: self.limiter,
            PluginManager: self.plugins,
            HookRelay: hook,
            Tracing | None: self._tracing,
            dict[str, Section]: self._sections,
        }
        for kind, of_kind in by_kind.items():
            self.providers.add(of_kind, kind=kind)
        for provided in (
            self.settings,
            self.db,
            self.secrets,
            self.jobs,
            self.metrics,
            self.job_admin,
            self.providers,
        ):
            self.providers.add(provided)
        self.declared = core_parts.declarations(hook, self.providers)
        self.providers.add(self.declared)

    def _add_plugins(self) -> None:
        hook = self.plugins.hook
        for section in self._sections.values():
            self.providers.add(section)
        create_plugins(self.plugins, self.plugin_context())
        for objects in hook.register_services():
            for kind, provided in objects.items():
                self.providers.add(provided, kind=kind)
        of_core = [rule for built in self._built for rule in built.inbound()]
        self.get(InboundDispatcher).declare([*of_core, *flatten(hook.register_inbound())])
        endpoints = [*core_parts.CORE_ENDPOINTS, *flatten(hook.register_endpoints())]
        check_endpoints(endpoints)
        self.endpoints = [endpoint.bound(self.providers) for endpoint in endpoints]

    def openapi(self, endpoints: Sequence[Endpoint], *, with_events: bool = True) -> dict[str, Any]:
        """The OpenAPI document of some of the service's endpoints, and of its events. What is published of it
        is shorter, see `msgsvc_core.http.openapi.shared`."""
        from msgsvc_core.http.openapi import openapi  # noqa: PLC0415 - workers serve no API

        settings = self.settings
        return openapi(
            endpoints,
            settings.base_url,
            events=self.events.catalogue.values() if with_events else (),
            errors=self.errors,
            errors_url=settings.errors_url,
            header_prefix=settings.header_prefix,
        )

    @cached_property
    def app(self) -> ASGIApp:
        """The ASGI application; served directly, its lifespan starts and stops the service.

        Mounted in another application, use `service.lifespan` (or `async with service`) there.
        """
        from msgsvc_core.http import application  # noqa: PLC0415 - workers serve no API

        edge = self._call(application.edge, write_audit=self.audit.write_call)
        readiness = self._call(
            application.readiness,
            keys_are_lost=lambda: self.keys_are_lost,
            is_draining=lambda: self.is_draining,
        )
        app: ASGIApp = self._call(
            application.application,
            endpoints=self.endpoints,
            edge=edge,
            readiness=readiness,
            openapi=lambda: self.openapi(self.endpoints),
            pages_of_core=flatten(
                self._call(pages) for part in core_parts.CORE_PARTS for pages in part.pages
            ),
            pages_of_plugins=flatten(self.plugins.hook.register_pages()),
            lifespan=self.lifespan,
        )
        return app

    def _call(self, function: Callable[..., Any], **given: Any) -> Any:
        """Calls a function of a part, which gets all other parameters by their types."""
        return self.providers.bind(function, given)(**given)

    def explainers(self) -> "list[Explainer]":
        """Explains ids to operators, see `msgsvc explain`: the core's kinds, then those of plugins."""
        from msgsvc_core.mailings.explaining import (  # noqa: PLC0415 - servers explain nothing
            core_explainers,
        )

        of_plugins: list[Explainer] = flatten(self.plugins.hook.register_explainers())
        of_core = self._call(
            core_explainers,
            known_jobs=lambda: {spec.name for spec in self.job_specs},
            follow_events=[each.follow_events for each in of_plugins if each.follow_events],
        )
        return [*of_core, *of_plugins]

    def section(self, model: type[S]) -> S:
        """A plugin's settings, by their type."""
        for section in self._sections.values():
            if isinstance(section, model):
                return section
        raise LookupError(f"no loaded plugin has settings of type {model.__qualname__}")

    def get(self, kind: type[T]) -> T:
        """The one object of that type, of the core or registered by a plugin (hook `register_services`)."""
        return self.providers.get(kind)

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
        """The jobs of the core, then those of plugins."""
        of_core = [spec for built in self._built for spec in built.jobs()]
        return [*of_core, *flatten(self.plugins.hook.register_jobs())]

    @cached_property
    def planned_messages(self) -> list[PlannedMessages]:
        """What plugins send later without a job, see `msgsvc outbox`."""
        return flatten(self.plugins.hook.register_planned_messages())

    @cached_property
    def lane_specs(self) -> list[LaneSpec]:
        of_core = [spec for built in self._built for spec in built.lanes()]
        return [
            LaneSpec("default", concurrency=8),
            *of_core,
            *flatten(self.plugins.hook.register_lanes()),
        ]

    def _session_name(self) -> str:
        # Of PostgreSQL only: it reads the scripts.
        of_postgres = self.settings.database_url.startswith("postgresql")
        return session_name(self.migrations) if of_postgres else "msgsvc"

    async def migrate(self, phase: Phase | None = None) -> list[str]:
        """Brings the database up to date, or applies one half of the migrations; returns those that were
        applied. Raises `DatabaseTooNew`, `MigrationRefused`, `DatabaseUnavailable`."""
        settings = self.settings
        return await migrate(
            settings.own_database_url,
            self.migrations,
            phase,
            has_sessions=settings.database_direct_url is not None,
        )

    async def open_database(self) -> None:
        """Connects to the database only. Raises what `msgsvc_core.db.opening.open_database` raises."""
        await open_database(self.db, self.migrations, self.migrate)

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
            if role == "serve" and self.db.dialect == "sqlite":
                self._mark_served(undo)
            if not await reads_its_secrets(db=self.db, secrets=self.secrets):
                # Most features work without the old keys; docs/troubleshoot.md describes the recovery.
                self.keys_are_lost = True
                log.error("secret_keys_lost")
            await self._call(start_parts, undo=undo, role=role, new_runner=self._new_runner)
            self._started = undo.pop_all()

    def _mark_served(self, undo: AsyncExitStack) -> None:
        served = ServedFile(sqlite_path(self.settings.database_url))
        if not served.acquire():
            # Rate limits, notifications and the runner of jobs are those of one process.
            log.warning(
                "sqlite_served_twice",
                path=str(sqlite_path(self.settings.database_url)),
                remedy="serve a SQLite file by one process, or use PostgreSQL",
            )
        undo.callback(served.release)

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

    def plugin_context(self) -> PluginContext:
        """The parts that plugins get."""
        context: PluginContext = self._call(
            PluginContext,
            media=lambda: self.media,
            sections=self._sections,
            peers=self._call(
                Peers,
                areas=lambda: [
                    # With what their handlers ask for by type.
                    area.bound(self.providers)
                    for area in flatten(self.plugins.hook.register_dashboard())
                ],
                endpoints=lambda: self.endpoints,
                audited=lambda: [COMMANDS, *self.plugins.hook.register_audited()],
            ),
        )
        return context

    def _new_runner(self, *, pass_on: Callable[[str], None] | None = None) -> LaneRunner:
        return LaneRunner(
            self.job_specs,
            self.lane_specs,
            db=self.db,
            clock=self.clock,
            queue=self.jobs,
            settings=self.settings.jobs,
            table_owners=[source.owner for source in self.migrations],
            key_ids=self.secrets.key_ids,
            pass_on=pass_on,
            tracing=self._tracing,
        )

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
