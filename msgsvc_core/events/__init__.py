"""Events: what happened in a project, published to the feed, plugins and in-process listeners."""

from msgsvc_core.events.contract import Event, EventSpec, Listener, NewEvent
from msgsvc_core.events.emitter import Events
from msgsvc_core.events.erasure import anonymous, is_about

__all__ = ["Event", "EventSpec", "Events", "Listener", "NewEvent", "anonymous", "is_about"]
