"""The error envelope: exactly four fields (decision 0075)."""

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.db import DatabaseUnavailable, Deadlock
from msgsvc_core.db.errors import FileLocked, NotOpen
from msgsvc_core.kernel.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    Unavailable,
)
from msgsvc_core.kernel.json import to_json

#: Maximum characters of a message. Many repeat an id from the path, which may be as long as a header may.
MAX_MESSAGE = 500

log = structlog.get_logger(__name__)


def envelope(error: ApiError, errors_url: str) -> Response:
    """The response for an error."""
    body = {
        "error": public_message(error),
        "code": error.code,
        "retryable": error.retryable,
        "docs_url": f"{errors_url}#{error.code}",
    }
    headers = dict(error.headers)
    if error.retry_after_s is not None:
        headers["Retry-After"] = str(error.retry_after_s)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"  # RFC 9110, section 11.6.1
    return Response(
        to_json(body).encode(),
        status_code=error.status,
        headers=headers,
        media_type="application/json",
    )


def public_message(error: ApiError) -> str:
    """The part of the message that is shown to clients."""
    message = error.message
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"


def api_error(error: Exception) -> ApiError:
    """The error that a client sees; details go to the log only."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, DatabaseUnavailable):
        log.warning("database_unavailable", error=str(error))
        reason = "the database can't be reached"
        if isinstance(error, Deadlock):
            reason = "other requests changed the same data at the same time"
        elif isinstance(error, NotOpen):
            reason = (
                "the service is not started: run its lifespan in the application that mounts it"
            )
        elif isinstance(error, FileLocked):
            reason = "another process has locked the database"
        return Unavailable(reason, retry_after_s=1)
    log.error("request_failed", exc_info=error)
    return InternalError("an error on our side; the log has it under the request id")


def http_error(request: Request, error: HTTPException) -> ApiError:
    """Starlette's own HTTP errors, with our codes."""
    known: dict[int, type[ApiError]] = {
        404: NotFound,
        405: MethodNotAllowed,
        500: InternalError,
        503: Unavailable,
    }
    kind = known.get(error.status_code, BadRequest)
    message = f"there is nothing at {request.scope['path']}" if kind is NotFound else error.detail
    answer = kind(message)
    answer.headers.update(error.headers or {})
    return answer
