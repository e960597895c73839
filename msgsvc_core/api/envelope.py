"""The error envelope: exactly four fields (interface spec, section 2)."""

import json

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.errors import ApiError, BadRequest, InternalError, MethodNotAllowed, NotFound


def envelope(error: ApiError, errors_url: str) -> Response:
    """The answer that an error becomes."""
    body = {
        "error": error.message,
        "code": error.code,
        "retryable": error.retryable,
        "docs_url": f"{errors_url}#{error.code}",
    }
    headers = dict(error.headers)
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    return Response(
        json.dumps(body, ensure_ascii=False).encode(),
        status_code=error.status,
        headers=headers,
        media_type="application/json",
    )


def http_error(request: Request, error: HTTPException) -> ApiError:
    """Starlette's own refusals under our codes."""
    known: dict[int, type[ApiError]] = {404: NotFound, 405: MethodNotAllowed, 500: InternalError}
    kind = known.get(error.status_code, BadRequest)
    message = f"there is nothing at {request.url.path}" if kind is NotFound else error.detail
    answer = kind(message)
    answer.headers.update(error.headers or {})
    return answer
