"""The part of routes."""

from msgsvc_core.channels import Channels
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.parts import Built, Part
from msgsvc_core.routing.choosing import RouteChooser
from msgsvc_core.routing.routes import router
from msgsvc_core.routing.service import Routes
from msgsvc_core.subscribers import Subscribers
from msgsvc_core.subscribers.permissions import Permissions


def _routes(
    *,
    clock: Clock,
    db: Database,
    settings: Settings,
    channels: Channels,
    states: ChannelStates,
    subscribers: Subscribers,
    permissions: Permissions,
) -> Built:
    chooser = RouteChooser(
        db=db,
        channels=channels,
        find_stopped=states.find_stopped,
        subscribers=subscribers,
        permissions=permissions,
    )
    routes = Routes(clock=clock, channels=channels, limits=settings.limits, chooser=chooser)
    return Built(provides=[routes])


PART = Part(build=[_routes], endpoints=router.endpoints)
