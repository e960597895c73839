"""Routes: the channels on which a person is tried, in their order, and how long to wait for each."""

from msgsvc_core.routing.choosing import RouteChooser
from msgsvc_core.routing.models import Route, RouteHours, RouteStep
from msgsvc_core.routing.service import Routes

__all__ = ["Route", "RouteChooser", "RouteHours", "RouteStep", "Routes"]
