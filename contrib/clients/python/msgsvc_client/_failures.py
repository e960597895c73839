"""What can go wrong in a call. The classes for single error codes are in `errors.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class MsgsvcError(Exception):
    """Base of all exceptions of this package."""


class ApiError(MsgsvcError):
    """The service refused a request. Each code has a subclass in `msgsvc_client.errors`.

    A code that this version doesn't know, and an answer of a proxy in between, are an `ApiError` itself.
    """

    #: The code that a subclass stands for; empty here.
    CODE: ClassVar[str] = ""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int,
        retryable: bool,
        docs_url: str = "",
        method: str = "",
        path: str = "",
        retry_after_s: float | None = None,
        request_id: str = "",
        attempts: int = 1,
        raw: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        #: What the service says about it, for people. It names the field at fault.
        self.message = message
        #: What programs act on: `subscriber_not_found`. `http_502` if the answer was not the service's own.
        self.code = code
        self.status = status
        #: Whether the same request may succeed later. The client has tried again already.
        self.retryable = retryable
        #: Where the code is documented.
        self.docs_url = docs_url
        self.method = method
        self.path = path
        #: Seconds to wait, if the service said so.
        self.retry_after_s = retry_after_s
        #: To be quoted to the operator, who finds it in the log.
        self.request_id = request_id
        #: How often the request was sent.
        self.attempts = attempts
        #: Whether an earlier try got no answer, and may have taken effect: a `PUT` that renames is then
        #: refused as `not_found`, for example.
        self.earlier_try_unanswered = False
        #: The body of the answer.
        self.raw: Mapping[str, Any] = raw or {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Between processes: the default would call the constructor with the message alone.
        return _restored, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        place = f" ({self.method} {self.path})" if self.method else ""
        quoted = f" [{self.request_id}]" if self.request_id else ""
        return f"{self.code}: {self.message}{place}{quoted}"


class TransportError(MsgsvcError):
    """The service gave no answer. Only after `ConnectFailed` it is certain that nothing happened."""

    def __init__(
        self, message: str, *, method: str = "", path: str = "", attempts: int = 1
    ) -> None:
        super().__init__(message)
        self.message = message
        self.method = method
        self.path = path
        self.attempts = attempts

    def __str__(self) -> str:
        times = f" after {self.attempts} attempts" if self.attempts > 1 else ""
        return f"{self.message} ({self.method} {self.path}){times}" if self.method else self.message


class ConnectFailed(TransportError):
    """No connection to the service was made, so nothing was sent."""


class ConnectionBroken(TransportError):
    """The connection ended before the whole answer was there."""


class RequestTimeout(TransportError):
    """The answer, or a part of it, did not come in time."""


class InvalidResponse(MsgsvcError):
    """The answer is not what the API promises: is `base_url` the service's, and the service not older than
    this client?"""


def _restored(
    kind: type[ApiError], arguments: tuple[object, ...], state: Mapping[str, Any]
) -> ApiError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(state)
    return error
