"""`RouteMoves` built from a context."""

from msgsvc_core.messages.route_moves import RouteMoves
from msgsvc_core.plugins.context import PluginContext


def moves_of(core: PluginContext) -> RouteMoves:
    return RouteMoves(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        subscribers=core.subscribers,
        chooser=core.routes.chooser,
    )
