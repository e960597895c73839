"""Describes the endpoints as OpenAPI 3.1, from the same types that validate."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from msgsvc_core.api.conventions import description
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.uploads import UPLOAD_FIELD
from msgsvc_core.kernel.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    IdempotencyConflict,
    InternalError,
    InvalidApiKey,
    InvalidUrl,
    NotFound,
    PayloadTooLarge,
    ProjectInactive,
    RateLimitProject,
    TooEarly,
    Unauthorized,
    Unavailable,
    ValidationFailed,
)
from msgsvc_core.kernel.i18n import LANGUAGES, LISTED_MARK

_REF = "#/components/schemas/{model}"

#: The body of an endpoint that takes a file.
_UPLOAD = {
    "type": "object",
    "properties": {
        UPLOAD_FIELD: {"type": "string", "contentMediaType": "application/octet-stream"}
    },
    "required": [UPLOAD_FIELD],
    "additionalProperties": False,
}

#: What every endpoint with an API key can answer.
EVERYWHERE: tuple[type[ApiError], ...] = (
    Unauthorized,
    InvalidApiKey,
    ProjectInactive,
    Forbidden,
    RateLimitProject,
    InternalError,
    Unavailable,
)


class ErrorEnvelope(BaseModel):
    """What every error looks like."""

    error: str
    code: str
    retryable: bool
    docs_url: str


def openapi(
    endpoints: Sequence[Endpoint], base_url: str, languages: Sequence[str] = LANGUAGES
) -> dict[str, Any]:
    """The document at `/openapi.json`; `languages` are those of the setting."""
    schemas, components = _schemas(endpoints, languages)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operation = _operation(endpoint, schemas, components)
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "msgsvc",
            "version": version("msgsvc-core"),
            "description": description(),
        },
        "servers": [{"url": base_url}],
        "security": [{"bearer": []}, {"header": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
    }


def errors_of(endpoint: Endpoint) -> list[type[ApiError]]:
    """Every error code that the endpoint can answer with."""
    errors = [*endpoint.errors]
    if endpoint.writes:
        # Those without a body refuse one, and POST refuses a malformed Idempotency-Key;
        # another Content-Type and a broken-off body are a bad request.
        errors += [BadRequest, ValidationFailed, PayloadTooLarge]
        if endpoint.body and takes_url(endpoint.body):
            errors.append(InvalidUrl)
    else:
        # What stands in the query where nothing belongs is refused too.
        errors.append(ValidationFailed)
        if endpoint.query and "cursor" in endpoint.query.model_fields:
            errors.append(BadRequest)
    if endpoint.path_parameters:
        # Whatever it names may be missing, or be a text that no database holds.
        errors.append(NotFound)
    if endpoint.method == "POST" and not endpoint.public:
        errors += [IdempotencyConflict, TooEarly]
    errors += [InternalError, Unavailable] if endpoint.public else EVERYWHERE
    return sorted(set(errors), key=lambda error: (error.status, error.code))


@cache
def takes_url(body: type[BaseModel]) -> bool:
    """Whether a URL stands anywhere in such a body."""
    return '"format": "uri"' in json.dumps(body.model_json_schema())


def _as_described(schema: Any, languages: Sequence[str]) -> Any:
    """The schema, with the languages that are listed, and without `null` as a default, which says only that
    a field may be left out.

    Code generators read a default as a value, and make the field a required one.
    """
    if isinstance(schema, list):
        return [_as_described(each, languages) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if LISTED_MARK in schema:
        schema = {**schema, "enum": [*languages]}
    return {
        name: _as_described(value, languages)
        for name, value in schema.items()
        if (name, value) != ("default", None) and name != LISTED_MARK
    }


def _schemas(
    endpoints: Sequence[Endpoint], languages: Sequence[str]
) -> tuple[dict[type[BaseModel], dict[str, Any]], dict[str, Any]]:
    modes: dict[type[BaseModel], str] = {ErrorEnvelope: "serialization"}
    for endpoint in endpoints:
        if endpoint.body:
            modes[endpoint.body] = "validation"
        if endpoint.query:
            modes[endpoint.query] = "validation"
        if endpoint.answer:
            modes[endpoint.answer] = "serialization"
    by_model, document = models_json_schema(
        list(modes.items()),  # type: ignore[arg-type] # its modes are literals, ours text
        ref_template=_REF,
    )
    schemas = {model: schema for (model, _), schema in by_model.items()}
    # pydantic also takes dataclasses, of which we hand it none.
    return schemas, _as_described(document.get("$defs", {}), languages)  # type: ignore[return-value]


def _operation(
    endpoint: Endpoint, schemas: dict[type[BaseModel], dict[str, Any]], components: dict[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "tags": [endpoint.area],
        "summary": endpoint.summary,
        "description": endpoint.description,
        "parameters": _parameters(endpoint, schemas, components),
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schemas[endpoint.body]}},
        }
    if endpoint.takes_upload:
        operation["requestBody"] = {
            "required": True,
            "content": {"multipart/form-data": {"schema": _UPLOAD}},
        }
    if endpoint.public:
        operation["security"] = []
    return operation


def _parameters(
    endpoint: Endpoint, schemas: dict[type[BaseModel], dict[str, Any]], components: dict[str, Any]
) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in endpoint.path_parameters
    ]
    if endpoint.query:
        schema = components[schemas[endpoint.query]["$ref"].rpartition("/")[2]]
        parameters += [
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "schema": field,
            }
            for name, field in schema.get("properties", {}).items()
        ]
    if endpoint.method == "POST" and not endpoint.public:
        parameters.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,128}$"},
            }
        )
    return parameters


def _responses(
    endpoint: Endpoint, schemas: dict[type[BaseModel], dict[str, Any]]
) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    if endpoint.answer:
        responses[str(endpoint.status)] = {
            "description": (endpoint.answer.__doc__ or "").strip(),
            "content": {"application/json": {"schema": schemas[endpoint.answer]}},
        }
    elif endpoint.media_type:
        responses[str(endpoint.status)] = {
            "description": endpoint.summary,
            "content": {endpoint.media_type: {"schema": {"type": "string"}}},
        }
    else:
        responses["204"] = {"description": "Done; there is no body."}
    for error in errors_of(endpoint):
        known = responses.setdefault(
            str(error.status),
            {
                "description": "",
                "content": {"application/json": {"schema": schemas[ErrorEnvelope]}},
            },
        )
        known["description"] = f"{known['description']} `{error.code}`".strip()
    return responses
