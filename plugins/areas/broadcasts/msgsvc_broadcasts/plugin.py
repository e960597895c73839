"""Hook implementations. Each delegates to the module that owns the behaviour."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgsvc_broadcasts.dashboard import pages
from msgsvc_broadcasts.events import BROADCAST_EVENTS
from msgsvc_broadcasts.routes import router
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.dashboard import Pages
from msgsvc_core.db import Tx
from msgsvc_core.events import EventSpec
from msgsvc_core.mailings import Mailing
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl


@hookimpl
def register_events() -> Sequence[EventSpec]:
    return BROADCAST_EVENTS


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def create_plugin(context: PluginContext) -> "BroadcastsPlugin":
    return BroadcastsPlugin(context)


class BroadcastsPlugin:
    """The plugin's object, and the hooks that need it."""

    def __init__(self, context: PluginContext) -> None:
        self._broadcasts = Broadcasts(mailings=context.mailings, events=context.events)

    @hookimpl
    def register_services(self) -> Mapping[type, Any]:
        return {Broadcasts: self._broadcasts}

    @hookimpl
    def register_endpoints(self) -> Sequence[Endpoint]:
        return router.endpoints

    @hookimpl
    def register_dashboard(self) -> Sequence[Pages]:
        return [pages]

    @hookimpl
    async def on_mailing_ended(self, tx: Tx, mailing: Mailing) -> None:
        await self._broadcasts.emit_finished(tx, mailing)
