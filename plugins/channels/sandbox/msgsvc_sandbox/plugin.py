"""Hook implementations of the sandbox channel."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.channels import ChannelKind
from msgsvc_core.config.settings import Settings, SettingsSection
from msgsvc_core.db import MigrationSource
from msgsvc_core.plugins.advice import Finding
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_sandbox.admission import Admission
from msgsvc_sandbox.channel import SandboxChannel
from msgsvc_sandbox.exposure import check_exposure
from msgsvc_sandbox.faults import Faults
from msgsvc_sandbox.mailbox import Mailbox
from msgsvc_sandbox.pages import SandboxPages
from msgsvc_sandbox.routes import endpoints
from msgsvc_sandbox.service import Messenger
from msgsvc_sandbox.settings import SandboxChannelSettings, SandboxSettings
from msgsvc_sandbox.wakeups import Wakeups

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
    return [
        ChannelKind(
            "sandbox",
            SandboxChannelSettings,
            SandboxChannel,
            for_development=True,
            about="in the browser, for development",
        )
    ]


@hookimpl
def review_settings(settings: Settings) -> Sequence[Finding]:
    return list(check_exposure(settings))


@hookimpl
def create_plugin(context: PluginContext) -> "SandboxPlugin":
    return SandboxPlugin(context)


class SandboxPlugin:
    """The plugin's objects, and the hooks that need them."""

    def __init__(self, context: PluginContext) -> None:
        wakeups = Wakeups()
        self._texts = context.texts
        self._who = context.settings(SandboxSettings).pages
        self._base_url = context.config.base_url
        self._faults = Faults(context.db, wakeups)
        self._mailbox = Mailbox(context.db, context.clock, wakeups)
        self._messenger = Messenger(
            clock=context.clock,
            db=context.db,
            secrets=context.secrets,
            texts=context.texts,
            media=context.config.media,
            channels=context.channels,
            faults=self._faults,
            wakeups=wakeups,
        )

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Faults: self._faults, Mailbox: self._mailbox, Messenger: self._messenger}

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return [] if self._who == "off" else endpoints(Admission(self._who, self._base_url))

    @hookimpl
    def register_pages(self) -> Sequence[Any]:
        if self._who == "off":
            return []
        admission = Admission(self._who, self._base_url)
        return SandboxPages(self._messenger, self._texts).routes(admission)

    @hookimpl
    def on_stopping(self) -> None:
        self._messenger.close()
