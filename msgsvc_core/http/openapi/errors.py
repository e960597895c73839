"""Error responses of an endpoint: which codes, and the envelope they come in."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

from msgsvc_core.api.endpoint import Endpoint, ResponseModel
from msgsvc_core.kernel.errors import (
    RETRYABLE_STATUSES,
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

#: Error codes of every endpoint with an API key.
EVERYWHERE: tuple[type[ApiError], ...] = (
    Unauthorized,
    InvalidApiKey,
    ProjectInactive,
    Forbidden,
    RateLimitProject,
    InternalError,
    Unavailable,
)


class ErrorEnvelope(ResponseModel):
    """The body of every error."""

    error: str = Field(
        description="The error for people; it names the field at fault.",
        examples=["text: must be at most 4000 characters"],
    )
    code: str = Field(
        description="What is wrong, for programs. Each response lists its codes under `x-error-codes`,"
        " and `x-errors` says what they mean; later versions may add some.",
        examples=["validation_failed"],
    )
    retryable: bool = Field(
        description="Whether the same request may succeed later: true for 425, 429, 500 and 503.",
        examples=[False],
    )
    docs_url: str = Field(
        description="Documentation of the code.",
        examples=["http://127.0.0.1:8000/docs/errors#validation_failed"],
        json_schema_extra={"format": "uri"},
    )


def errors_of(endpoint: Endpoint) -> list[type[ApiError]]:
    """Every error code that the endpoint can answer with."""
    errors = [*endpoint.errors]
    if endpoint.writes:
        # Those without a body refuse one, and POST refuses a malformed Idempotency-Key;
        # another Content-Type and a broken-off body are a bad request.
        errors += [BadRequest, ValidationFailed, PayloadTooLarge]
        if endpoint.body and _takes_url(endpoint.body):
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
def _takes_url(body: type[BaseModel]) -> bool:
    """Whether a URL stands anywhere in such a body."""
    return '"format": "uri"' in json.dumps(body.model_json_schema())


def error_examples(errors: Iterable[type[ApiError]], errors_url: str) -> dict[str, Any]:
    """An envelope of each code, for the document's components."""
    return {
        error.code: {
            "summary": _meaning(error),
            "value": {
                "error": _meaning(error),
                "code": error.code,
                "retryable": error.status in RETRYABLE_STATUSES,
                "docs_url": f"{errors_url}#{error.code}",
            },
        }
        for error in sorted(errors, key=_code)
    }


def describe_codes(errors: Iterable[type[ApiError]]) -> dict[str, Any]:
    """Status and meaning by code. The field `code` itself is an open text: later versions add codes."""
    return {
        error.code: {
            "status": error.status,
            "retryable": error.status in RETRYABLE_STATUSES,
            "description": " ".join((error.__doc__ or error.code).split()),
        }
        for error in sorted(errors, key=_code)
    }


def _code(error: type[ApiError]) -> str:
    return error.code


def _meaning(error: type[ApiError]) -> str:
    return (error.__doc__ or error.code).strip().splitlines()[0]
