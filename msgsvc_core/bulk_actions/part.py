"""The part of bulk actions: what they declare. Each kind is built by the package whose things it changes."""

from msgsvc_core.bulk_actions.engine import FINISHED, RETENTION
from msgsvc_core.bulk_actions.models import BulkActionFinished
from msgsvc_core.bulk_actions.personal_data import PERSONAL_DATA
from msgsvc_core.events import EventSpec
from msgsvc_core.parts import Part

EVENTS = (
    EventSpec(
        FINISHED,
        "A bulk action on subscribers or tickets ended, whether completed, cancelled or failed.",
        BulkActionFinished,
        of_subscriber=False,
        group="people",
    ),
)

PART = Part(events=EVENTS, personal_data=PERSONAL_DATA, retention=lambda _limits: [RETENTION])
