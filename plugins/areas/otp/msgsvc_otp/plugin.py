"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
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
from msgsvc_otp.by_route import SEALED, CodeRoutes
from msgsvc_otp.codes import CodeHashes
from msgsvc_otp.dashboard import pages
from msgsvc_otp.errors import OTP_ERRORS
from msgsvc_otp.events import OTP_EVENTS
from msgsvc_otp.hosted.pages import HostedCodes
from msgsvc_otp.hosted.rendering import CodeTemplates
from msgsvc_otp.hosted.service import CodePages
from msgsvc_otp.inbound import CodeBot
from msgsvc_otp.jobs import CodeJobs
from msgsvc_otp.personal_data import PERSONAL_DATA
from msgsvc_otp.routes import router
from msgsvc_otp.sending import CodeSender
from msgsvc_otp.service import OneTimeCodes
from msgsvc_otp.settings import OtpSettings
from msgsvc_otp.wording import Wording

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("otp", OtpSettings)


@hookimpl
def register_errors() -> Sequence[type[ApiError]]:
    return OTP_ERRORS


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return OTP_EVENTS


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("otp", HERE / "migrations")


@hookimpl
def register_sealed() -> Sequence[SealedColumn]:
    return [SEALED]


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_personal_data() -> Sequence[PersonalData]:
    return PERSONAL_DATA


@hookimpl
def create_plugin(context: PluginContext) -> "OtpPlugin":
    return OtpPlugin(context)


class OtpPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        sender = CodeSender(
            wording=Wording(
                projects=context.projects, templates=context.templates, texts=context.texts
            ),
            channels=context.channels,
            messages=context.messages,
            outbox=context.outbox,
            default_lang=context.config.default_lang,
        )
        by_route = CodeRoutes(
            clock=context.clock,
            secrets=context.secrets,
            jobs=context.jobs,
            routes=context.routes,
            subscribers=context.subscribers,
            sender=sender,
        )
        self._codes = OneTimeCodes(
            clock=context.clock,
            settings=context.settings(OtpSettings),
            hashes=CodeHashes(context.secrets),
            by_route=by_route,
            subscribers=context.subscribers,
            contacts=context.contacts,
            billing=context.billing,
            events=context.events,
        )
        settings = context.settings(OtpSettings)
        self._code_pages = CodePages(
            clock=context.clock,
            secrets=context.secrets,
            settings=settings,
            projects=context.projects,
            subscribers=context.subscribers,
            channels=context.channels,
            codes=self._codes,
            base_url=context.config.base_url,
        )
        self._hosted = HostedCodes(
            db=context.db,
            limiter=context.limiter,
            settings=settings,
            pages=self._code_pages,
            templates=CodeTemplates(context.texts),
        )
        self._bot = CodeBot(
            clock=context.clock,
            projects=context.projects,
            subscribers=context.subscribers,
            codes=self._codes,
        )
        self._jobs = CodeJobs(
            clock=context.clock,
            subscribers=context.subscribers,
            events=context.events,
            by_route=by_route,
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {OneTimeCodes: self._codes, CodePages: self._code_pages}

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        return self._hosted.routes()

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return self._bot.rules()

    @hookimpl
    def register_jobs(self) -> Sequence[JobSpec]:
        return self._jobs.specs()
