"""The error codes of the API, one class each; the HTTP layer turns them into the envelope.

A plugin declares its own subclasses and lists them in `register_errors`. The docstring of a class is its
description in the documentation.
"""

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

#: Statuses for which retrying the same request makes sense (decision 0075).
RETRYABLE_STATUSES = frozenset({425, 429, 500, 503})


class SettingsError(Exception):
    """The configuration is invalid. The text names the setting and says what to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, and the field that has it.

    `msgid` is the English template and the message's id in the catalogue of `package`; `params` are its
    values. It is translated only where it is shown: `str()` is in English.
    """

    msgid: str
    params: Mapping[str, object] = dataclasses.field(default_factory=dict)
    #: The path of the field: `("steps[3]", "text")`; empty if it concerns no field.
    path: tuple[str, ...] = ()
    package: str = ""

    @property
    def field(self) -> str:
        return ": ".join(self.path)

    @property
    def reason(self) -> str:
        """The problem, in English and without the field."""
        return self.msgid.format(**self.params) if self.params else self.msgid

    def at(self, *places: str, joined: bool = False) -> "Finding":
        """The finding for a nested field: `text` at `steps[3]`; if `joined`, as one path component:
        `steps[3].text`."""
        if joined and self.path:
            *before, place = places
            return replace(self, path=(*before, f"{place}.{self.path[0]}", *self.path[1:]))
        return replace(self, path=(*places, *self.path))

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}" if self.path else self.reason


class Reasons(tuple[Finding, ...]):
    """Problems as the parameter of another finding."""

    __slots__ = ()

    def __str__(self) -> str:
        return join_findings(self)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Refusal(Exception):
    """An exception whose text is made of findings, so that it can be translated for each reader."""

    findings: tuple[Finding, ...]

    def __init__(self, findings: Iterable[Finding]) -> None:
        super().__init__()
        self._set(findings)

    def _set(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        self.args = (join_findings(self.findings),)

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidValue(Refusal, ValueError):
    """Raised by a validator: `InvalidValue("must be at most {limit} bytes", limit=64)`."""

    def __init__(self, msgid: str, /, *, field: str = "", **params: object) -> None:
        super().__init__((Finding(msgid, params, (field,) if field else (), calling_package()),))

    @classmethod
    def made_of(cls, findings: Iterable[Finding]) -> Self:
        """Findings of another check, as an error of this class."""
        error = cls("")
        error._set(findings)
        return error


def join_findings(findings: Iterable[Finding]) -> str:
    """Several findings in English, as the API returns them."""
    return "; ".join(map(str, findings))


def findings_of(error: Exception) -> tuple[Finding, ...]:
    """The findings of a refusal; for any other exception its text, untranslated."""
    return error.findings if isinstance(error, Refusal) else (Finding(str(error)),)


def package_of_module(name: str) -> str:
    return name.partition(".")[0]


def calling_package(above: int = 1) -> str:
    """The package of the code that calls the calling function, whose catalogue has the text.

    `above` is the number of functions between the two. Constructors of the same object are skipped.
    """
    frame = sys._getframe(above)
    made = frame.f_locals.get("self")
    while frame.f_back is not None and (
        frame.f_code.co_name == "__init__" and frame.f_locals.get("self") is made
    ):
        frame = frame.f_back
    return package_of_module(str(frame.f_globals.get("__name__", "")))


class ApiError(Refusal):
    """An error response.

    `ApiError("a project has at most {limit} forms", limit=20)`: the English template is the message's id in
    catalogues, and the keyword arguments are its parameters. `field` is the path of the invalid field.
    `retry_after_s` becomes `Retry-After`.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    #: Whether the handler's writes before the error are committed: an attempt that was counted must stay
    #: counted.
    keeps_writes: ClassVar[bool] = False

    def __init__(
        self,
        msgid: str | None = None,
        /,
        *,
        field: str = "",
        retry_after_s: int | None = None,
        **params: object,
    ) -> None:
        text = msgid or (type(self).__doc__ or self.code).splitlines()[0]
        package = calling_package() if msgid else package_of_module(type(self).__module__)
        super().__init__((Finding(text, params, (field,) if field else (), package),))
        self.retry_after_s = retry_after_s
        self.headers: dict[str, str] = {}

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Self:
        """The error for a value with several problems."""
        error = cls()
        error._set(findings)
        return error

    @classmethod
    def because(cls, error: Exception, *, field: str = "", joined: bool = False) -> Self:
        """The findings of a lower layer, as the error of `field` or, if `joined`, of a path below it."""
        path = (field,) if field else ()
        return cls.of(finding.at(*path, joined=joined) for finding in findings_of(error))

    @property
    def message(self) -> str:
        """The message in English."""
        return str(self)

    @property
    def retryable(self) -> bool:
        return self.status in RETRYABLE_STATUSES

    def at(self, place: str, *, joined: bool = False) -> Self:
        """The same error, for a part of the request: `steps[3]`; with `joined` as the start of the path,
        `steps[3].text`."""
        return self._copied(finding.at(place, joined=joined) for finding in self.findings)

    def said_as(self, msgid: str, /, *, field: str = "", **params: object) -> Self:
        """The same error as the parameter `{reason}` of another text."""
        around = {**params, "reason": Reasons(self.findings)}
        finding = Finding(msgid, around, (field,) if field else (), calling_package(2))
        return self._copied((finding,))

    def _copied(self, findings: Iterable[Finding]) -> Self:
        # Not `copy`, which would call the constructor of a subclass with wrong arguments.
        other = self.__class__.__new__(self.__class__)
        other.__dict__.update(self.__dict__)
        other._set(findings)
        return other


class BadRequest(ApiError):
    """The request is malformed."""

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
    """The API key is unknown, revoked or expired."""

    code, status = "invalid_api_key", 401


class BillingBlocked(ApiError):
    """Credits are exhausted, and the grace period has ended."""

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
    """The body exceeds the maximum size."""

    code, status = "payload_too_large", 413


class UnsupportedMediaType(ApiError):
    """The body is compressed; send it as it is, without `Content-Encoding`."""

    code, status = "unsupported_media_type", 415


class TooEarly(ApiError):
    """The same request is still being processed, or comes too soon after one like it.

    The first holds for a request that is repeated with its `Idempotency-Key`, the second for one-time codes,
    between which there is a shortest time. Repeat it after `Retry-After` seconds.
    """

    code, status = "too_early", 425


class RateLimitProject(ApiError):
    """The project's rate limit is exceeded; wait for `Retry-After` seconds."""

    code, status = "rate_limit_project", 429


class InternalError(ApiError):
    """Something went wrong on our side; the log has it under the request id."""

    code, status = "internal_error", 500


class PlatformBusy(ApiError):
    """The messenger's platform, which this request depends on, does not respond."""

    code, status = "platform_busy", 500


class Unavailable(ApiError):
    """The service is temporarily unavailable, e.g. because its database is down."""

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
    UnsupportedMediaType,
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
