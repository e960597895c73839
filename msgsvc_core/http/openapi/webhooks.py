"""Events as webhooks: the request that carries each."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.api.types import OnChannel, SubscriberId, Time
from msgsvc_core.events.contract import EventSpec
from msgsvc_core.http.openapi.examples import Examples
from msgsvc_core.http.openapi.schemas import Schema
from msgsvc_core.subscribers.models import FirstName, Lang, OwnId, TagNames, Username


class EventFields(ResponseModel):
    """Fields of every payload."""

    event_id: str = Field(
        description="Id of the event, the same for every webhook and in `GET /v1/events`.",
        examples=[examples.EVENT_ID],
    )
    occurred_at: Time = Field(description="When it happened.")


class SubscriberEventFields(ResponseModel):
    """Further fields of a subscriber's events, see `Subscriber.event_fields`."""

    subscriber_id: SubscriberId
    channel: OnChannel
    first_name: FirstName
    username: Username
    lang: Lang
    tags: TagNames
    external_id: OwnId


#: Models of whose fields payloads are put together.
PARTS: tuple[type[BaseModel], ...] = (EventFields, SubscriberEventFields)

#: A hexadecimal signature, shortened for the examples.
_HEX = "5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd"


class Webhooks:
    """Describes events. `references` lead from models to their `schemas`, to which those of payloads are
    added."""

    def __init__(
        self,
        references: dict[type[BaseModel], Schema],
        schemas: dict[str, Schema],
        header_prefix: str,
    ) -> None:
        self._references = references
        self._schemas = schemas
        self._headers = _headers(header_prefix)

    def of(self, events: Iterable[EventSpec]) -> dict[str, Any]:
        """The document's `webhooks`, by the event's name."""
        specs = sorted(events, key=lambda spec: spec.name)
        return {spec.name: {"post": self._request(spec)} for spec in specs}

    def _request(self, spec: EventSpec) -> dict[str, Any]:
        name = _component(spec.name)
        self._schemas[f"{name}Data"] = self._data(spec)
        self._schemas[name] = {
            "type": "object",
            "description": f"`{spec.name}`: {spec.meaning}",
            "properties": {
                "event": {"type": "string", "const": spec.name, "description": "The event's name."},
                "data": {
                    "$ref": f"#/components/schemas/{name}Data",
                    "description": "What happened. Later versions may add fields.",
                },
            },
            "required": ["event", "data"],
        }
        schema = {"$ref": f"#/components/schemas/{name}"}
        return {
            "operationId": f"on_{spec.name.replace('.', '_')}",
            "tags": ["events"],
            "summary": spec.meaning,
            "security": [],
            "parameters": self._headers,
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": schema,
                        "example": self._example(schema),
                    }
                },
            },
            "responses": {"2XX": {"description": "Received. The body is ignored."}},
        }

    def _data(self, spec: EventSpec) -> Schema:
        """The payload: the fields of every event, the subscriber's, and its own."""
        common, person = self._schema_of(EventFields), self._schema_of(SubscriberEventFields)
        own = self._schema_of(spec.fields)
        always = [common, own]
        if spec.of_subscriber and not spec.subscriber_is_optional:
            always.insert(1, person)
        parts = [common, person, own] if spec.of_subscriber else [common, own]
        around = {name: value for part in parts[:-1] for name, value in self._example(part).items()}
        own_examples = [{**around, **example} for example in own.get("examples", ())]
        return {
            "type": "object",
            "description": own.get("description", spec.meaning),
            "properties": {
                name: field for part in parts for name, field in part["properties"].items()
            },
            "required": [name for part in always for name in part.get("required", ())],
            **({"examples": own_examples} if own_examples else {}),
        }

    def _schema_of(self, model: type[BaseModel]) -> Schema:
        schema = self._schemas[str(self._references[model]["$ref"]).rpartition("/")[2]]
        return {"properties": {}, **schema}

    def _example(self, schema: Schema) -> Any:
        return Examples(self._schemas).of(schema)


def _component(event: str) -> str:
    """`delivery.success` is `DeliverySuccessEvent`."""
    words = event.replace(".", "_").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words) + "Event"


def _headers(prefix: str) -> list[dict[str, Any]]:
    described = (
        (
            f"{prefix}-Signature",
            (
                "`t=<timestamp>,v1=<signature>`: HMAC-SHA256 over `<timestamp>.<raw body>`, in lowercase"
                " hex, keyed with the secret as shown. While a secret is being rotated, one `v1=` for each."
            ),
            f"t=1772357400,v1={_HEX}",
        ),
        (f"{prefix}-Timestamp", "When this attempt was signed, in Unix seconds.", "1772357400"),
        (
            f"{prefix}-Delivery-Id",
            "Id of the delivery, the same in every attempt: store it to recognise duplicates.",
            "whd_032aJamqrS1XqQvY0gJt5u",
        ),
        (f"{prefix}-Event", "The event's name, as in the body.", "delivery.success"),
        (f"{prefix}-Event-Id", "The event's id, as in the body.", examples.EVENT_ID),
        ("webhook-id", "The delivery's id, for Standard Webhooks.", "whd_032aJamqrS1XqQvY0gJt5u"),
        ("webhook-timestamp", "The timestamp, for Standard Webhooks.", "1772357400"),
        (
            "webhook-signature",
            "`v1,<base64>` over `<id>.<timestamp>.<raw body>`, separated by spaces, for Standard Webhooks.",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
        ),
    )
    return [
        {
            "name": name,
            "in": "header",
            "required": True,
            "description": description,
            "schema": {"type": "string"},
            "example": example,
        }
        for name, description, example in described
    ]
