"""Responses of the protocol's endpoints, and the reading of their requests."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from msgsvc_core.api.body import check_encoding
from msgsvc_core.api.envelope import api_error
from msgsvc_core.kernel.json import read_json, to_json
from msgsvc_oidc.protocol.errors import OAuthError, invalid_request
from msgsvc_oidc.protocol.parameters import MAX_FORM_BYTES, Parameters, read_form

Handler = Callable[[Request], Awaitable[Response]]

#: Of responses with tokens (RFC 6749, section 5.1).
NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}

#: For pages of other origins: what they send is what every client sends, never a cookie.
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "WWW-Authenticate, Retry-After",
    "Cross-Origin-Resource-Policy": "cross-origin",
}

_PREFLIGHT = {
    **CORS,
    "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Max-Age": "3600",
}


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] = NO_STORE
) -> Response:
    """A JSON object, for any origin."""
    return Response(
        to_json(dict(body)).encode(),
        status,
        {**CORS, "X-Content-Type-Options": "nosniff", **headers},
        media_type="application/json",
    )


def error_response(error: Exception) -> Response:
    """The response for an error: the registered one, or one that says nothing of our side."""
    if isinstance(error, OAuthError):
        return json_response(error.body(), error.status, {**NO_STORE, **error.headers})
    found = api_error(error)
    if found.status == 415:
        refused = {"error": "invalid_request", "error_description": found.message}
        return json_response(refused, 415, {**NO_STORE, **found.headers})
    if found.status == 404:
        return json_response({"error": "not_found", "error_description": found.message}, 404)
    retry = {} if found.retry_after_s is None else {"Retry-After": str(found.retry_after_s)}
    code = "temporarily_unavailable" if found.status in {429, 503} else "server_error"
    text = "too many requests" if found.status == 429 else "an error on our side; try again"
    return json_response(
        {"error": code, "error_description": text},
        found.status if found.status in {429, 503} else 500,
        {**NO_STORE, **retry},
    )


def endpoint(handler: Handler) -> Handler:
    """Answers errors of a handler, and preflight requests of browsers."""

    async def answer(request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=_PREFLIGHT)
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - an edge; `api_error` logs what is unexpected
            return error_response(error)

    return answer


async def posted(request: Request) -> Parameters:
    """The form of a request, each parameter once; an empty body has none, and needs no media type. Raises
    `OAuthError`."""
    body = await _body(request)
    if not body:
        return Parameters([])
    parameters = read_form(body, request.headers.get("content-type", ""))
    parameters.check_single()
    return parameters


async def posted_json(request: Request) -> Mapping[str, Any]:
    """The JSON object of a request. Raises `OAuthError`."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise invalid_request("the body must be application/json")
    try:
        body = read_json(await _body(request))
    except (ValueError, RecursionError):
        raise invalid_request("the body is no JSON") from None
    if not isinstance(body, dict):
        raise invalid_request("the body must be a JSON object")
    return body


async def _body(request: Request) -> bytes:
    check_encoding(request)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                raise invalid_request("the body is too large")
    except ClientDisconnect:
        raise invalid_request("the body ended early") from None
    return bytes(body)
