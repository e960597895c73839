"""The part of events: what they declare. `Events` itself is built by the service."""

from msgsvc_core.events.contract import EventSpec
from msgsvc_core.events.erasure import erase_events
from msgsvc_core.events.personal_data import PERSONAL_DATA
from msgsvc_core.events.retention import retention_rule
from msgsvc_core.events.routes import router
from msgsvc_core.events.tracked import EventTracked
from msgsvc_core.parts import Part

EVENTS = (
    EventSpec(
        "event.tracked",
        "You reported an event by `POST /v1/events`.",
        EventTracked,
        group="developers",
        title=lambda _, _data: _("You reported an event"),
    ),
)

PART = Part(
    endpoints=router.endpoints,
    events=EVENTS,
    personal_data=PERSONAL_DATA,
    retention=lambda limits: [retention_rule(event_days=limits.event_days)],
    erasers=[erase_events],
)
