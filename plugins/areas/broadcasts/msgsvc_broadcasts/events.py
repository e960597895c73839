"""The events of broadcasts."""

from msgsvc_broadcasts.models import BroadcastId
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_core.mailings.models import Failed, Sent, Skipped, Total, Unknown


class BroadcastEnded(ResponseModel):
    """Fields of `broadcast.completed` and `broadcast.cancelled`."""

    job_id: BroadcastId
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: Total


BROADCAST_EVENTS = (
    EventSpec(
        "broadcast.completed",
        "A broadcast is fully processed.",
        BroadcastEnded,
        of_subscriber=False,
        group="sending",
    ),
    EventSpec(
        "broadcast.cancelled",
        "A broadcast was cancelled, and none of its deliveries is in progress any more.",
        BroadcastEnded,
        of_subscriber=False,
        group="sending",
    ),
)
