"""Operations: parameters, request bodies and responses of endpoints."""

from collections import defaultdict
from http import HTTPStatus
from typing import Any, get_type_hints

from pydantic import BaseModel, TypeAdapter

from msgsvc_core.api import examples
from msgsvc_core.api.as_given import without_null
from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.api.uploads import UPLOAD_FIELD
from msgsvc_core.http.openapi.errors import ErrorEnvelope, errors_of
from msgsvc_core.http.openapi.examples import Examples
from msgsvc_core.http.openapi.headers import error_headers, success_headers
from msgsvc_core.http.openapi.schemas import Schema
from msgsvc_core.kernel.errors import ApiError

_JSON = "application/json"

#: The body of an endpoint that takes a file.
_UPLOAD: dict[str, Any] = {
    "type": "object",
    "properties": {
        UPLOAD_FIELD: {
            "type": "string",
            # For generators that know of OpenAPI 3.0 alone.
            "format": "binary",
            "contentMediaType": "application/octet-stream",
            "description": "The file. Its type is detected from its content.",
        }
    },
    "required": [UPLOAD_FIELD],
    "additionalProperties": False,
}

#: Its parts, for the example: bytes can't stand in JSON, so it is a text.
_UPLOADED = {UPLOAD_FIELD: examples.FILE}

_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Repeated with the same path and body within 24 hours, the request returns the first"
    " response again and has no further effect.",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{8,128}$"},
    "example": "order-1042-paid",
}


class Operations:
    """Describes endpoints. `references` lead from models to their `schemas`."""

    def __init__(
        self, references: dict[type[BaseModel], Schema], schemas: dict[str, Schema]
    ) -> None:
        self._references = references
        self._schemas = schemas
        self._examples = Examples(schemas)

    def of(self, endpoint: Endpoint) -> dict[str, Any]:
        """The operation object of an endpoint."""
        operation: dict[str, Any] = {
            "operationId": endpoint.name,
            "tags": [endpoint.area],
            "summary": endpoint.summary,
            **({"description": more} if (more := _after_summary(endpoint)) else {}),
            "parameters": self._parameters(endpoint),
            "responses": self._responses(endpoint),
        }
        if (pages := _pagination(endpoint)) is not None:
            operation["x-pagination"] = pages
        if endpoint.body:
            operation["requestBody"] = {
                "required": True,
                "content": {_JSON: self._content(endpoint.body)},
            }
        if endpoint.takes_upload:
            operation["requestBody"] = {
                "required": True,
                "content": {"multipart/form-data": self._upload(endpoint.parts)},
            }
        if endpoint.public:
            operation["security"] = []
        return operation

    def _content(self, model: type[BaseModel]) -> dict[str, Any]:
        schema = self._references[model]
        return {"schema": schema, "example": self._examples.of(schema)}

    def _upload(self, parts: type[BaseModel] | None) -> dict[str, Any]:
        """A file and the other parts, which are texts."""
        if parts is None:
            return {"schema": _UPLOAD, "example": _UPLOADED}
        model = self._schemas[self._references[parts]["$ref"].rpartition("/")[2]]
        others = {name: without_null(each) for name, each in model["properties"].items()}
        schema = {**_UPLOAD, "properties": {**_UPLOAD["properties"], **others}}
        return {"schema": schema, "example": _UPLOADED}

    def _parameters(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        parameters = [
            self._parameter(name, "path", schema, required=True)
            for name, schema in _path_parameters(endpoint).items()
        ]
        if endpoint.query:
            query = self._schemas[self._references[endpoint.query]["$ref"].rpartition("/")[2]]
            parameters += [
                self._parameter(name, "query", schema, required=name in query.get("required", ()))
                for name, schema in query.get("properties", {}).items()
            ]
        if endpoint.method == "POST" and not endpoint.public:
            parameters.append(_IDEMPOTENCY_KEY)
        return parameters

    def _parameter(
        self, name: str, where: str, schema: Schema, *, required: bool
    ) -> dict[str, Any]:
        """Its description and example stand beside the schema."""
        # A query has no way to say null: it leaves the parameter out.
        schema = without_null(schema)
        inner = {key: schema[key] for key in schema if key not in {"description", "examples"}}
        described = {"description": schema["description"]} if "description" in schema else {}
        example = self._examples.of(schema)
        return {
            "name": name,
            "in": where,
            "required": required,
            **described,
            "schema": inner,
            **({} if example is None else {"example": example}),
        }

    def _responses(self, endpoint: Endpoint) -> dict[str, Any]:
        status, success = self._success(endpoint)
        responses = {str(status): {**success, "headers": success_headers(endpoint)}}
        by_status: defaultdict[int, list[type[ApiError]]] = defaultdict(list)
        for error in errors_of(endpoint):
            by_status[error.status].append(error)
        for status, errors in by_status.items():
            refusal = self._refusal(errors)
            if status in endpoint.error_pages and endpoint.media_type:
                refusal["content"][endpoint.media_type] = _file(
                    endpoint.media_type, endpoint.example
                )
            responses[str(status)] = {
                **refusal,
                "headers": error_headers(endpoint, status),
            }
        return responses

    def _success(self, endpoint: Endpoint) -> tuple[int, dict[str, Any]]:
        if endpoint.answer:
            return endpoint.status, {
                # The schema describes it.
                "description": f"{HTTPStatus(endpoint.status).phrase}.",
                "content": {_JSON: self._content(endpoint.answer)},
            }
        if endpoint.media_type:
            return endpoint.status, {
                "description": endpoint.summary,
                "content": {
                    endpoint.media_type: _file(endpoint.media_type, endpoint.example),
                    **{
                        other: _file(other, endpoint.example) for other in endpoint.more_media_types
                    },
                },
            }
        return 204, {"description": "No Content."}

    def _refusal(self, errors: list[type[ApiError]]) -> dict[str, Any]:
        codes = [error.code for error in errors]
        return {
            "description": " ".join(f"`{code}`" for code in codes),
            "x-error-codes": codes,
            "content": {
                _JSON: {
                    "schema": self._references[ErrorEnvelope],
                    "examples": {code: {"$ref": f"#/components/examples/{code}"} for code in codes},
                }
            },
        }


def _after_summary(endpoint: Endpoint) -> str:
    """The description without its first line, which is the summary."""
    return endpoint.description.partition("\n")[2].strip()


def _file(media_type: str, example: str | None) -> dict[str, Any]:
    """A file as content. `format: binary` is for generators that know of OpenAPI 3.0 alone."""
    schema: Schema = {"type": "string", "contentMediaType": media_type}
    if not media_type.startswith("text/"):
        schema["format"] = "binary"
    return {"schema": schema, **({} if example is None else {"example": example})}


def _pagination(endpoint: Endpoint) -> dict[str, str] | None:
    """Where a list has its entries and the cursor of the next page, and the parameters that page; None for
    what is no list. In an answer that contains a list, by dotted names."""
    query, answer = endpoint.query, endpoint.answer
    if query is None or answer is None or "cursor" not in query.model_fields:
        return None
    prefix = ""
    if "next_cursor" not in answer.model_fields:
        inside = [
            name
            for name, field in answer.model_fields.items()
            if "next_cursor" in getattr(field.annotation, "model_fields", {})
        ]
        if len(inside) != 1:
            return None
        prefix = f"{inside[0]}."
    return {
        "cursor": "cursor",
        "limit": "limit",
        "data": f"{prefix}data",
        "next_cursor": f"{prefix}next_cursor",
    }


def _path_parameters(endpoint: Endpoint) -> dict[str, Schema]:
    """The schemas of the path's parameters. Those that the handler does not take are texts too."""
    hints = get_type_hints(endpoint.handler, include_extras=True)
    return {
        name: TypeAdapter(hints.get(name, str)).json_schema() for name in endpoint.path_parameters
    }
