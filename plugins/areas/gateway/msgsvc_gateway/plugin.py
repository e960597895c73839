"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.db.personal_data import PersonalData
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_gateway.dashboard import pages
from msgsvc_gateway.errors import GATEWAY_ERRORS
from msgsvc_gateway.events import GATEWAY_EVENTS
from msgsvc_gateway.hooks import GatewayHooks
from msgsvc_gateway.jobs import GatewayJobs
from msgsvc_gateway.personal_data import PERSONAL_DATA
from msgsvc_gateway.recipients import Recipients
from msgsvc_gateway.routes import router
from msgsvc_gateway.sending import Calls, GatewaySending, Wording
from msgsvc_gateway.service import SIGNING_KEYS, Gateways
from msgsvc_gateway.settings import GatewaySettings

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("gateway", GatewaySettings)


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return GATEWAY_ERRORS


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return GATEWAY_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("gateway", HERE / "migrations")


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [SIGNING_KEYS]


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def create_plugin(context: PluginContext) -> "GatewayPlugin":
    return GatewayPlugin(context, context.settings(GatewaySettings))


class GatewayPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext, settings: GatewaySettings) -> None:
        self._gateways = Gateways(
            clock=context.clock,
            secrets=context.secrets,
            channels=context.channels,
            settings=settings,
            base_url=context.config.base_url,
        )
        calls = Calls(channels=context.channels, messages=context.messages, outbox=context.outbox)
        self._hooks = GatewayHooks(
            clock=context.clock,
            db=context.db,
            limiter=context.limiter,
            settings=settings,
            projects=context.projects,
            gateways=self._gateways,
            sending=GatewaySending(
                clock=context.clock,
                settings=settings,
                secrets=context.secrets,
                recipients=Recipients(
                    subscribers=context.subscribers,
                    contacts=context.contacts,
                    channels=context.channels,
                ),
                wording=Wording(
                    projects=context.projects,
                    templates=context.templates,
                    texts=context.texts,
                ),
                calls=calls,
                billing=context.billing,
                outbox=context.outbox,
            ),
        )
        self._jobs = GatewayJobs(
            clock=context.clock,
            subscribers=context.subscribers,
            outbox=context.outbox,
            calls=calls,
            events=context.events,
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Gateways: self._gateways}

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return self._hooks.routes()

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self._jobs.specs()
