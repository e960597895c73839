"""How requests reach the service: by httpx2, or by anything with the same two methods."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

import httpx2

from msgsvc_client._failures import ConnectFailed, ConnectionBroken, RequestTimeout
from msgsvc_client._wire import Request

#: As many connections as there are calls at once: requests that wait for people (long polls) would otherwise
#: hold up all others behind httpx2's hundred. Twenty are kept for later.
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20)


class AsyncResponse:
    """The head of an answer, and its body as it arrives. It must be read to its end, or closed.

    `headers` are named in lower case. `chunks` raises `ConnectionBroken` or `RequestTimeout`.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.status = status
        self.headers = headers
        self.chunks = chunks
        self._close = close

    async def read(self) -> bytes:
        """The whole body; then the answer is closed."""
        try:
            return b"".join([chunk async for chunk in self.chunks])
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        await self._close()


class AsyncTransport(Protocol):
    """Sends one request, once: it neither repeats nor follows redirects."""

    async def send(self, request: Request, timeout_s: float) -> AsyncResponse:
        """Returns when the head of the answer is there. `timeout_s` limits each wait for the network.

        Raises `ConnectFailed` if nothing was sent, else `ConnectionBroken` or `RequestTimeout`.
        """
        ...

    async def aclose(self) -> None: ...


class AsyncClock(Protocol):
    """The time that retries, deadlines and polling go by; tests give their own."""

    def monotonic(self) -> float:
        """Seconds, from any start."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class AsyncSystemClock:
    """The machine's time."""

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class AsyncHttpxTransport:
    """Requests over a pool of connections. A client of httpx2 may be given, for proxies or certificates of
    one's own; it is closed with the transport."""

    def __init__(self, client: httpx2.AsyncClient | None = None) -> None:
        self._http = client or httpx2.AsyncClient(limits=LIMITS)

    async def send(self, request: Request, timeout_s: float) -> AsyncResponse:
        built = self._http.build_request(
            request.method,
            request.url,
            headers=dict(request.headers),
            content=request.content,
            # Sockets take no infinity.
            timeout=timeout_s if math.isfinite(timeout_s) else None,
        )
        # httpx2's exceptions hold the request with its headers, so they are not kept as a cause.
        try:
            answer = await self._http.send(built, stream=True, follow_redirects=False)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise ConnectFailed(_text("no connection", error)) from None
        except httpx2.TimeoutException as error:
            raise RequestTimeout(_text("no answer in time", error)) from None
        except httpx2.TransportError as error:
            raise ConnectionBroken(_text("the connection ended", error)) from None
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return AsyncResponse(answer.status_code, headers, _chunks(answer), answer.aclose)

    async def aclose(self) -> None:
        await self._http.aclose()


async def _chunks(answer: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.aiter_bytes():
            yield chunk
    except httpx2.TimeoutException as error:
        raise RequestTimeout(_text("the answer stopped", error)) from None
    # DecodingError is none of the transport's: a body that is not what its Content-Encoding says.
    except (httpx2.TransportError, httpx2.DecodingError, httpx2.StreamError) as error:
        raise ConnectionBroken(_text("the answer ended early", error)) from None


def _text(what: str, error: Exception) -> str:
    return f"{what}: {error or type(error).__name__}"
