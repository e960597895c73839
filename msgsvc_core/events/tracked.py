"""What a project tells of its own: `POST /v1/events`."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from msgsvc_core.api.endpoint import Answer, Body
from msgsvc_core.db import Tx
from msgsvc_core.events.contract import Event
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import to_json

if TYPE_CHECKING:
    from msgsvc_core.service import Service


class EventTracked(Answer):
    """Fields of `event.tracked`."""

    name: str
    properties: dict[str, Any]


class TrackBody(Body):
    """Something that a subscriber did, e.g. in your shop."""

    subscriber_id: str | None = None
    external_id: str | None = None
    channel: str | None = Field(None, description="With external_id: which of the subscribers.")
    name: str = Field(
        pattern=r"^[\w.-]{1,64}$", description="Yours to choose, e.g. `cart.abandoned`."
    )
    properties: dict[str, Any] = Field(
        default={}, description="Comes back in the event; at most 8 KiB as JSON."
    )


class TrackAnswer(Answer):
    """The event was taken."""

    event_id: str


async def track(service: "Service", tx: Tx, project_id: str, body: TrackBody) -> Event:
    """Emits `event.tracked`, with the subscriber's fields, whether they are subscribed or not.

    Raises what `subscribers.receiver` raises, and `ValidationFailed` for properties that are too many.
    """
    most = service.settings.limits.event_properties_bytes
    if len(to_json(body.properties).encode()) > most:
        raise ValidationFailed(f"properties: must be at most {most} bytes as JSON")
    receiver = await service.subscribers.receiver(
        project_id,
        subscriber_id=body.subscriber_id,
        external_id=body.external_id,
        channel=body.channel,
        tx=tx,
    )
    subscriber = await service.subscribers.find(tx, project_id, receiver.subscriber_id)
    fields = {"name": body.name, "properties": body.properties}
    return await service.events.emit(tx, project_id, "event.tracked", fields, subscriber=subscriber)
