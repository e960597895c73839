"""The error codes of the API, one class each; the edge turns them into the envelope.

A plugin declares its own subclasses and names them in `register_errors`. The docstring of a class is
its meaning in the documentation.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar

#: Statuses on which repeating the same request makes sense (decision 0075).
RETRYABLE_STATUSES = frozenset({425, 429, 500, 503})


class SettingsError(Exception):
    """The configuration can't work. The text names the setting and says what to do."""


class ApiError(Exception):
    """An answer other than success.

    `message` is for a person and names the field at fault. `retry_after_s` becomes `Retry-After`.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    #: Whether what the handler wrote before it raised this is committed all the same: an attempt that
    #: was counted must stay counted.
    keeps_writes: ClassVar[bool] = False

    def __init__(self, message: str | None = None, *, retry_after_s: int | None = None) -> None:
        self.message = message or (type(self).__doc__ or self.code).splitlines()[0]
        self.retry_after_s = retry_after_s
        self.headers: dict[str, str] = {}
        super().__init__(self.message)

    @property
    def retryable(self) -> bool:
        return self.status in RETRYABLE_STATUSES


class BadRequest(ApiError):
    """The request can't be understood."""

    code, status = "bad_request", 400


class ValidationFailed(ApiError):
    """The body, the query or a header breaks a rule; the message names the field."""

    code, status = "validation_failed", 400


class InvalidUrl(ValidationFailed):
    """A URL is malformed, of a forbidden kind, or not one of those registered."""

    code, status = "invalid_url", 400


class InvalidExternalId(ApiError):
    """`external_id` is not 1-128 printable characters without spaces at its ends."""

    code, status = "invalid_external_id", 400


class MutuallyExclusiveIdentifiers(ApiError):
    """Both `subscriber_id` and `external_id` are given; a request names exactly one."""

    code, status = "mutually_exclusive_identifiers", 400


class Unauthorized(ApiError):
    """No API key was sent."""

    code, status = "unauthorized", 401


class InvalidApiKey(ApiError):
    """The API key is unknown or revoked."""

    code, status = "invalid_api_key", 401


class BillingBlocked(ApiError):
    """Credits are exhausted and the grace period is over."""

    code, status = "billing_blocked", 402


class Forbidden(ApiError):
    """The API key has no access to this area."""

    code, status = "forbidden", 403


class ProjectInactive(ApiError):
    """The project is disabled."""

    code, status = "project_inactive", 403


class NotFound(ApiError):
    """There is no such resource in this project."""

    code, status = "not_found", 404


class SubscriberNotFound(ApiError):
    """There is no such subscriber in this project."""

    code, status = "subscriber_not_found", 404


class MethodNotAllowed(ApiError):
    """The path exists, the method does not; see the `Allow` header."""

    code, status = "method_not_allowed", 405


class Conflict(ApiError):
    """The resource exists already, or is in a state that forbids this."""

    code, status = "conflict", 409


class AlreadySubscribed(ApiError):
    """The person is subscribed already."""

    code, status = "already_subscribed", 409


class PermissionHasSubscribers(ApiError):
    """Active subscribers have granted the permission; only the dashboard may delete it."""

    code, status = "permission_has_subscribers", 409


class IdempotencyConflict(ApiError):
    """The idempotency key was used before with another method, path or body."""

    code, status = "idempotency_conflict", 409


class PayloadTooLarge(ApiError):
    """The body is larger than the service takes."""

    code, status = "payload_too_large", 413


class TooEarly(ApiError):
    """The same request is still being worked on."""

    code, status = "too_early", 425


class RateLimitProject(ApiError):
    """The project's rate limit is exceeded; wait for `Retry-After` seconds."""

    code, status = "rate_limit_project", 429


class InternalError(ApiError):
    """Something went wrong on our side; the log has it under the request id."""

    code, status = "internal_error", 500


class PlatformBusy(ApiError):
    """The messenger's platform, which this call has to ask, gives no answer."""

    code, status = "platform_busy", 500


class Unavailable(ApiError):
    """The service can't work right now, e.g. because its database is away."""

    code, status = "unavailable", 503


CORE_ERRORS: tuple[type[ApiError], ...] = (
    BadRequest,
    ValidationFailed,
    InvalidUrl,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    Unauthorized,
    InvalidApiKey,
    BillingBlocked,
    Forbidden,
    ProjectInactive,
    NotFound,
    SubscriberNotFound,
    MethodNotAllowed,
    Conflict,
    AlreadySubscribed,
    PermissionHasSubscribers,
    IdempotencyConflict,
    PayloadTooLarge,
    TooEarly,
    RateLimitProject,
    InternalError,
    PlatformBusy,
    Unavailable,
)


class ErrorCatalogue:
    """Every error code of this service, core and plugins, for the documentation."""

    def __init__(self, errors: Iterable[type[ApiError]]) -> None:
        self._by_code: dict[str, type[ApiError]] = {}
        for error in errors:
            other = self._by_code.setdefault(error.code, error)
            if other is not error:
                raise ValueError(
                    f"error code {error.code!r} is declared by both {other.__qualname__} "
                    f"and {error.__qualname__}"
                )

    def __iter__(self) -> Iterator[type[ApiError]]:
        return iter(sorted(self._by_code.values(), key=lambda error: (error.status, error.code)))
