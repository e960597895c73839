"""Headers of responses."""

from typing import Any

from msgsvc_core.api.endpoint import Endpoint
from msgsvc_core.http.idempotency import NOT_STORED

#: Statuses with `Retry-After`.
WAITING = frozenset({425, 429, 503})

_REQUEST_ID = "X-Request-Id"
_RATE = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_REPLAYED = "Idempotent-Replayed"


def _header(description: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"description": description, "schema": schema, "example": example}


_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}

#: Every header of the document, by its name.
HEADERS: dict[str, dict[str, Any]] = {
    _REQUEST_ID: _header(
        "Id of the request, also in the service's log.", _TEXT, "req_032aJamqrP3YlWnUa0cT8K"
    ),
    "X-RateLimit-Limit": _header("Requests of the project in any 60 seconds.", _COUNT, 300),
    "X-RateLimit-Remaining": _header("Requests that are left.", _COUNT, 299),
    "X-RateLimit-Reset": _header(
        "Unix time in seconds at which the next request is free again.", _COUNT, 1772357460
    ),
    "Retry-After": _header("Seconds to wait before the next try.", _COUNT, 1),
    _REPLAYED: _header(
        "`true` if the response is that of an earlier request with the same `Idempotency-Key`.",
        {"type": "string", "const": "true"},
        "true",
    ),
    "Content-Disposition": _header(
        "`attachment`, with the file's name.", _TEXT, 'attachment; filename="photo.jpg"'
    ),
    "WWW-Authenticate": _header("The scheme of API keys.", {**_TEXT, "const": "Bearer"}, "Bearer"),
}


def success_headers(endpoint: Endpoint) -> dict[str, Any]:
    """The headers of the endpoint's success response. Those of the rate limit are on nearly all responses,
    and shown with 429."""
    names = [_REQUEST_ID]
    if endpoint.method == "POST" and not endpoint.public:
        names.append(_REPLAYED)
    if endpoint.media_type:
        names.append("Content-Disposition")
    return _references(names)


def error_headers(endpoint: Endpoint, status: int) -> dict[str, Any]:
    """The headers of an error response."""
    names = [_REQUEST_ID]
    if status == 401:
        names.append("WWW-Authenticate")
    if status == 429 and not endpoint.public:
        names += _RATE
    if status in WAITING:
        names.append("Retry-After")
    is_stored = status < 500 and status not in NOT_STORED
    if is_stored and endpoint.method == "POST" and not endpoint.public:
        names.append(_REPLAYED)
    return _references(names)


def _references(names: list[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
