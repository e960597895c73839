"""The plugin's door: which hooks the sandbox messenger implements."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import ChannelKind
from msgsvc_core.config.settings import SettingsSection
from msgsvc_core.db import MigrationSource
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_sandbox.admission import Admission
from msgsvc_sandbox.channel import SandboxChannel
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.pages import SandboxPages
from msgsvc_sandbox.routes import endpoints
from msgsvc_sandbox.service import Messenger
from msgsvc_sandbox.settings import SandboxChannelSettings, SandboxSettings
from msgsvc_sandbox.wakeups import Wakeups

if TYPE_CHECKING:
    from msgsvc_core.service import Service

HERE = Path(__file__).parent


@hookimpl
def register_settings() -> SettingsSection:
    return SettingsSection("sandbox", SandboxSettings)


@hookimpl
def register_migrations() -> MigrationSource:
    return MigrationSource("sandbox", HERE / "migrations")


@hookimpl
def register_locale() -> Path:
    return HERE / "locale"


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("sandbox", SandboxChannelSettings, SandboxChannel)]


@hookimpl
def register_services(service: "Service") -> Mapping[type, Any]:
    wakeups = Wakeups()
    faults = Faults(service.db, wakeups)
    return {
        Faults: faults,
        Mailbox: Mailbox(service.db, service.clock, wakeups),
        Messenger: Messenger(service, faults, wakeups),
    }


@hookimpl
def register_endpoints(service: "Service") -> Sequence[Endpoint]:
    who = service.section(SandboxSettings).pages
    return [] if who == "off" else endpoints(Admission(who, service.settings.base_url))


@hookimpl
def register_pages(service: "Service") -> Sequence[Any]:
    who = service.section(SandboxSettings).pages
    if who == "off":
        return []
    admission = Admission(who, service.settings.base_url)
    return SandboxPages(service.get(Messenger), service.texts).routes(admission)


@hookimpl
def on_stopping(service: "Service") -> None:
    service.get(Messenger).close()
