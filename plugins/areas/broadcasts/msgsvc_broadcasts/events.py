"""The events of broadcasts."""

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec


class BroadcastEnded(ResponseModel):
    """Fields of `broadcast.completed` and `broadcast.cancelled`: `total` is the sum of `sent`, `failed`
    and `skipped`. `failed` holds those of `unknown`: the service can't tell whether they got it."""

    job_id: str
    sent: int
    failed: int
    unknown: int
    skipped: int
    total: int


BROADCAST_EVENTS = (
    EventSpec(
        "broadcast.completed",
        "A broadcast is fully processed.",
        BroadcastEnded,
        of_subscriber=False,
    ),
    EventSpec(
        "broadcast.cancelled",
        "A broadcast was cancelled, and none of its deliveries is in progress any more.",
        BroadcastEnded,
        of_subscriber=False,
    ),
)
