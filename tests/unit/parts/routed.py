"""`RouteMoves` built from fakes."""

from msgsvc_core.messages.route_moves import RouteMoves
from msgsvc_devkit import FakeContext


def moves_of(core: FakeContext) -> RouteMoves:
    return RouteMoves(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        subscribers=core.subscribers,
        chooser=core.routes.chooser,
    )
