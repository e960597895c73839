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
        "A mass send is fully processed.",
        BroadcastEnded,
        of_subscriber=False,
    ),
    EventSpec(
        "broadcast.cancelled",
        "A mass send was cancelled, and nothing of it is on its way any more.",
        BroadcastEnded,
        of_subscriber=False,
    ),
)
