"""Custom events that projects report: `POST /v1/events`."""

from typing import Annotated, Any, Protocol

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Characters, NamedByExternalId, NamedById, NamedOnChannel
from msgsvc_core.db import Tx
from msgsvc_core.events.contract import Event, EventSubject
from msgsvc_core.events.emitter import Events
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.json import to_json

PROPERTIES: dict[str, Any] = {"cart_id": "c-1207", "total": 49.9}


class EventTracked(ResponseModel):
    """Fields of `event.tracked`."""

    name: str = Field(description="Your own name of what happened.", examples=["cart.abandoned"])
    properties: dict[str, Any] = Field(
        description="What you sent along; `{}` without any.", examples=[PROPERTIES]
    )


class TrackEventBody(RequestModel):
    """Something that a subscriber did, e.g. in your shop."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "external_id": examples.EXTERNAL_ID,
                    "name": "cart.abandoned",
                    "properties": PROPERTIES,
                }
            ]
        }
    )

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None
    name: Annotated[str, Characters(r"[\w.-]", 64)] = Field(
        description="Your own name of what happened: 1-64 letters, digits, `_`, `-` and dots.",
        examples=["cart.abandoned"],
    )
    properties: dict[str, Any] = Field(
        default={},
        description="Your own data, at most `limits.event_properties_bytes` of `GET /v1/project` as JSON; the"
        " event carries it.",
        examples=[PROPERTIES],
    )


class TrackedEventAnswer(ResponseModel):
    """The event was taken."""

    event_id: str = Field(
        description="The event `event.tracked`, in `GET /v1/events` and in webhooks.",
        examples=[examples.EVENT_ID],
    )


class FindSubscriber(Protocol):
    """Finds a subscriber by one of two identifiers; raises if there is none."""

    async def __call__(
        self,
        tx: Tx,
        project_id: str,
        *,
        subscriber_id: str | None,
        external_id: str | None,
        channel: str | None,
    ) -> EventSubject: ...


class TrackedEvents:
    """Records custom events. Properties are limited to `max_bytes` as JSON."""

    def __init__(self, *, events: Events, find_subscriber: FindSubscriber, max_bytes: int) -> None:
        self._events = events
        self._find_subscriber = find_subscriber
        self._max_bytes = max_bytes

    async def track(self, tx: Tx, project_id: str, body: TrackEventBody) -> Event:
        """Emits `event.tracked`, with the subscriber's fields, whether or not they are subscribed.

        Raises what `Subscribers.get_recipient` raises, and `ValidationFailed` for too many properties.
        """
        if len(to_json(body.properties).encode()) > self._max_bytes:
            raise ValidationFailed(
                "must be at most {limit} bytes as JSON", field="properties", limit=self._max_bytes
            )
        person = await self._find_subscriber(
            tx,
            project_id,
            subscriber_id=body.subscriber_id,
            external_id=body.external_id,
            channel=body.channel,
        )
        fields = {"name": body.name, "properties": body.properties}
        return await self._events.emit(tx, project_id, "event.tracked", fields, subscriber=person)
