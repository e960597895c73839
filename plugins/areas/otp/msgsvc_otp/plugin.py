"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import InboundRule
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import MigrationSource
from msgsvc_core.events import EventSpec
from msgsvc_core.jobs import JobSpec
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_otp.dashboard import pages
from msgsvc_otp.errors import OTP_ERRORS
from msgsvc_otp.events import OTP_EVENTS
from msgsvc_otp.inbound import CodeBot
from msgsvc_otp.jobs import PURGE_JOB, TOLD_JOB
from msgsvc_otp.routes import router
from msgsvc_otp.service import OneTimeCodes
from msgsvc_otp.settings import OtpSettings

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("otp", OtpSettings)


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


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
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_services(service: Service) -> Mapping[type, Any]:
    return {OneTimeCodes: OneTimeCodes(service)}


@hookimpl
def register_jobs() -> Sequence[JobSpec]:
    return [TOLD_JOB, PURGE_JOB]


@hookimpl
def register_endpoints() -> Sequence[Endpoint]:
    return router.endpoints


@hookimpl
def register_inbound(service: Service) -> Sequence[InboundRule]:
    return CodeBot(service).rules()
