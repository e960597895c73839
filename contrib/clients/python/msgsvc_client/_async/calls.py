"""One call of the API: its request, its repeats, and its answer as an object or an exception."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from msgsvc_client._async.transport import AsyncClock, AsyncResponse, AsyncTransport
from msgsvc_client._failures import (
    ApiError,
    ConnectFailed,
    InvalidResponse,
    RequestTimeout,
    TransportError,
)
from msgsvc_client._wire import (
    Request,
    check_idempotency_key,
    json_body,
    json_object,
    multipart,
    query_string,
    retry_after_s,
)
from msgsvc_client.errors import ERRORS_BY_CODE
from msgsvc_client.retries import RetryPolicy

T = TypeVar("T")

#: Statuses that are worth another try, where the body doesn't say: of the service and of a proxy before it.
_RETRYABLE = frozenset({425, 429, 500, 502, 503, 504})

#: Methods that have the same effect twice as once. A POST has it by its idempotency key.
_REPEATABLE = frozenset({"GET", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Call:
    """What one method of a resource asks for."""

    method: str
    path: str
    query: Mapping[str, object] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    #: Seconds for each wait for the network; None: the client's.
    timeout_s: float | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be sent again after a try whose effect is unknown."""
        return self.method in _REPEATABLE or "Idempotency-Key" in self.headers

    def with_json(self, fields: Mapping[str, object]) -> Call:
        headers = {**self.headers, "Content-Type": "application/json"}
        return replace(self, headers=headers, content=json_body(fields))

    def with_file(
        self,
        field_name: str,
        content: bytes,
        filename: str,
        kind: str,
        parts: Mapping[str, object] | None = None,
    ) -> Call:
        boundary = f"msgsvc-{secrets.token_hex(16)}"
        headers = {**self.headers, "Content-Type": f"multipart/form-data; boundary={boundary}"}
        body = multipart(field_name, content, filename, kind, boundary, parts or {})
        return replace(self, headers=headers, content=body)

    def with_key(self, idempotency_key: str | None) -> Call:
        """With this idempotency key, or one of its own."""
        key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
        return replace(
            self, headers={**self.headers, "Idempotency-Key": check_idempotency_key(key)}
        )


@dataclass(frozen=True)
class AsyncCaller:
    """Makes calls for all resources of a client."""

    transport: AsyncTransport
    clock: AsyncClock
    retries: RetryPolicy
    timeout_s: float
    base_url: str
    #: On every request; the API key is among them.
    headers: Mapping[str, str] = field(repr=False)

    async def json(self, call: Call, decode: Callable[[Mapping[str, Any]], T]) -> T:
        """The answer as an object."""
        _, content = await self._perform(call)
        data = json_object(content)
        if data is None:
            raise InvalidResponse(f"{call.method} {call.path}: the answer is no JSON object")
        try:
            return decode(data)
        except (KeyError, TypeError, AttributeError) as error:
            message = f"{call.method} {call.path}: the answer has another shape ({error!r})"
            raise InvalidResponse(message) from error

    async def nothing(self, call: Call) -> None:
        """For answers without a body.

        A DELETE whose first try got no answer has done its work if the second finds nothing to delete.
        """
        try:
            await self._perform(call)
        except ApiError as error:
            done = call.method == "DELETE" and error.status == 404 and error.earlier_try_unanswered
            if not done:
                raise

    async def stream(self, call: Call) -> AsyncResponse:
        """An answer whose body is still to be read: only what precedes it is tried again."""
        response, _ = await self._perform(call, whole=False)
        return response

    async def _perform(self, call: Call, *, whole: bool = True) -> tuple[AsyncResponse, bytes]:
        """The answer of success, and if `whole` its body. Raises what the last try ended with."""
        deadline = self.clock.monotonic() + self.retries.deadline_s
        attempt, unanswered = 0, False
        while True:
            attempt += 1
            result = await self._attempt(call, deadline, whole)
            if not isinstance(result, (ApiError, TransportError)):
                return result
            result.method, result.path, result.attempts = call.method, call.path, attempt
            if isinstance(result, ApiError):
                result.earlier_try_unanswered = unanswered
            if attempt >= self.retries.max_attempts or not _is_worth_repeating(call, result):
                raise result
            told = result.retry_after_s if isinstance(result, ApiError) else None
            wait = self.retries.wait_s(attempt, told)
            if self.clock.monotonic() + wait >= deadline:
                raise result
            unanswered = unanswered or _may_have_taken_effect(result)
            await self.clock.sleep(wait)

    async def _attempt(
        self, call: Call, deadline: float, whole: bool
    ) -> tuple[AsyncResponse, bytes] | ApiError | TransportError:
        url = f"{self.base_url}{call.path}{query_string(call.query)}"
        request = Request(call.method, url, {**self.headers, **call.headers}, call.content)
        timeout_s = self.timeout_s if call.timeout_s is None else call.timeout_s
        left = max(deadline - self.clock.monotonic(), 0.001)
        try:
            response = await self.transport.send(request, min(timeout_s, left))
            if response.status < 300 and not whole:
                return response, b""
            # The request may have been long on its way, as a file is: its answer is read nevertheless.
            end = max(deadline, self.clock.monotonic() + timeout_s)
            content = await self._body(response, end)
        except TransportError as error:
            # It is returned, and raised outside of this handler: what httpx2 raised holds the request with
            # the API key, and would go along as its context.
            return error
        return (response, content) if response.status < 300 else _api_error(response, content)

    async def _body(self, response: AsyncResponse, end: float) -> bytes:
        chunks: list[bytes] = []
        try:
            async for chunk in response.chunks:
                chunks.append(chunk)
                if self.clock.monotonic() > end:
                    raise RequestTimeout("the answer was not there in time")
        finally:
            await response.aclose()
        return b"".join(chunks)


def _is_worth_repeating(call: Call, error: ApiError | TransportError) -> bool:
    if isinstance(error, ConnectFailed):
        return True
    if isinstance(error, TransportError):
        return call.is_repeatable
    # After an error of the service itself nothing has happened; after one of a proxy, nobody knows.
    return error.retryable and (call.is_repeatable or not _may_have_taken_effect(error))


def _may_have_taken_effect(error: ApiError | TransportError) -> bool:
    if isinstance(error, ApiError):
        return not error.raw and error.status >= 500
    return not isinstance(error, ConnectFailed)


def _api_error(response: AsyncResponse, content: bytes) -> ApiError:
    data = json_object(content) or {}
    wait = retry_after_s(response.headers.get("retry-after"), datetime.now(timezone.utc))
    request_id = response.headers.get("x-request-id", "")
    status, code = response.status, data.get("code")
    if not isinstance(code, str):
        return ApiError(
            "a redirect: is `base_url` the service's address?"
            if status < 400
            else "not an answer of the service, but of something before it",
            code=f"http_{status}",
            status=status,
            retryable=status in _RETRYABLE,
            retry_after_s=wait,
            request_id=request_id,
        )
    return ERRORS_BY_CODE.get(code, ApiError)(
        str(data.get("error", "")),
        code=code,
        status=status,
        retryable=data.get("retryable") is True,
        docs_url=str(data.get("docs_url", "")),
        retry_after_s=wait,
        request_id=request_id,
        raw=data,
    )
