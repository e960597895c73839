"""Examples of the bodies of webhooks, from the events' own declarations, as the OpenAPI document has them."""

from collections.abc import Iterable
from typing import Any

from msgsvc_core.events.contract import EventSpec
from msgsvc_core.http.openapi.schemas import schemas_of
from msgsvc_core.http.openapi.webhooks import PARTS, Webhooks


def event_examples(specs: Iterable[EventSpec]) -> dict[str, dict[str, Any]]:
    """The body of a request that carries the event, by the event's name."""
    known = list(specs)
    models = [*PARTS, *(spec.fields for spec in known)]
    references, schemas = schemas_of([], models)
    described = Webhooks(references, schemas, "X-Service").of(known)
    return {
        name: each["post"]["requestBody"]["content"]["application/json"]["example"]
        for name, each in described.items()
    }
