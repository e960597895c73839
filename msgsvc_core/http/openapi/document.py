"""Puts the document together."""

from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel

from msgsvc_core.api.conventions import description
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.events.contract import EventSpec
from msgsvc_core.http.openapi.errors import ErrorEnvelope, describe_codes, error_examples, errors_of
from msgsvc_core.http.openapi.headers import HEADERS
from msgsvc_core.http.openapi.operations import Operations
from msgsvc_core.http.openapi.schemas import schemas_of
from msgsvc_core.http.openapi.webhooks import PARTS, Webhooks
from msgsvc_core.kernel.errors import ApiError


def openapi(
    endpoints: Sequence[Endpoint],
    base_url: str,
    *,
    events: Iterable[EventSpec] = (),
    errors: Iterable[type[ApiError]] = (),
    errors_url: str | None = None,
    header_prefix: str = "X-Service",
) -> dict[str, Any]:
    """The document at `/openapi.json`, of these endpoints and events.

    `errors` are further codes than those of the endpoints, `errors_url` is
    the page that describes them, and `header_prefix` that of webhooks.
    """
    specs = list(events)
    models: list[type[BaseModel]] = [ErrorEnvelope, *PARTS, *(spec.fields for spec in specs)]
    references, schemas = schemas_of(endpoints, models)
    operations = Operations(references, schemas)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operations.of(endpoint)
    used = {error for endpoint in endpoints for error in errors_of(endpoint)}
    webhooks = Webhooks(references, schemas, header_prefix).of(specs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "msgsvc",
            "version": version("msgsvc-core"),
            "summary": "Notifications and sign-in through messengers.",
            "description": description(),
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}, {"header": []}],
        "tags": _tags(endpoints),
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": _used(schemas, [paths, webhooks]),
            "headers": HEADERS,
            "examples": error_examples(used, errors_url or f"{base_url}/docs/errors"),
            "x-errors": describe_codes({*used, *errors}),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key of the project: `Authorization: Bearer msk_...`.",
                },
                "header": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-API-Key",
                    "description": "The same key, for clients that can't set `Authorization`.",
                },
            },
        },
    }


def _used(schemas: dict[str, Any], parts: list[Any]) -> dict[str, Any]:
    """The schemas to which these parts refer, in the order of their names. Those of queries and of events are
    taken apart: their fields stand elsewhere."""
    waiting, found = [*parts], set[str]()
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            waiting += part.values()
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in found:
                found.add(name)
                waiting.append(schemas[name])
    return {name: schemas[name] for name in sorted(found)}


def _tags(endpoints: Iterable[Endpoint]) -> list[dict[str, str]]:
    """The areas, with the first description that one of their routers has."""
    found: dict[str, str] = {}
    for endpoint in endpoints:
        found[endpoint.area] = found.get(endpoint.area) or endpoint.area_description
    return [
        {"name": area, **({"description": text} if text else {})}
        for area, text in sorted(found.items())
    ]
