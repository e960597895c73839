"""Stands between a client and the service, and fails when it is told to."""

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import httpx2

#: Of one request and its answer; not forwarded, as they are about one connection.
_HOP_BY_HOP = {"connection", "content-length", "transfer-encoding", "host", "keep-alive", "date"}


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one request.

    `refuse` cuts the connection before the service gets it, `cut` after it has worked it off, `half` in the
    middle of its answer; `stall` works it off and never answers; `answer` answers in place of the service.
    """

    kind: Literal["refuse", "cut", "half", "stall", "answer"]
    status: int = 0
    code: str = ""
    retry_after_s: int | None = None
    #: In place of the envelope of an error: what a proxy of somebody's writes.
    text: str = ""


@dataclass(slots=True)
class Forwarded:
    """A request as it came, and what became of it."""

    method: str
    path: str
    key: str
    fate: str
    #: Seconds since the proxy had asked for a wait; None if it hadn't.
    waited_s: float | None = None


@dataclass(slots=True)
class Proxy:
    """Listens at `url`; each of `faults` happens to one request, in this order."""

    service_url: str
    docs_url: str
    faults: deque[Fault] = field(default_factory=deque)
    requests: list[Forwarded] = field(default_factory=list)
    url: str = ""
    _server: asyncio.Server | None = None
    _http: httpx2.AsyncClient | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _asked_to_wait_at: float | None = None

    async def start(self) -> None:
        self._http = httpx2.AsyncClient(timeout=60)
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        assert self._http is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()
        await self._http.aclose()

    def drain(self) -> list[Forwarded]:
        """The requests since the last call."""
        found, self.requests = self.requests, []
        self._asked_to_wait_at = None
        return found

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone, as clients do that have waited long enough
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; returns whether the connection goes on."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        body = await _body(reader, headers)
        fault = self.faults.popleft() if self.faults else None
        request = Forwarded(method, path.partition("?")[0], headers.get("idempotency-key", ""), "")
        if self._asked_to_wait_at is not None:
            request.waited_s = asyncio.get_running_loop().time() - self._asked_to_wait_at
            self._asked_to_wait_at = None
        self.requests.append(request)
        if fault is not None and fault.kind in ("refuse", "answer"):
            request.fate = f"answered {fault.status}" if fault.status else "refused"
            return await self._instead(fault, writer)
        answer = await self._forwarded(method, path, headers, body)
        request.fate = {"cut": "cut", "half": "cut in the answer", "stall": "stalled"}.get(
            fault.kind if fault else "", str(answer.status_code)
        )
        if fault is None:
            writer.write(_written(answer.status_code, dict(answer.headers), answer.content))
            await writer.drain()
            return True
        if fault.kind == "half":
            whole = _written(answer.status_code, dict(answer.headers), answer.content)
            writer.write(whole[: -len(answer.content) // 2])
            await writer.drain()
        if fault.kind == "stall":
            # Until the client hangs up.
            await reader.read()
        return False

    async def _instead(self, fault: Fault, writer: asyncio.StreamWriter) -> bool:
        if fault.kind == "refuse":
            return False
        headers = {"content-type": "text/html" if fault.text else "application/json"}
        if fault.retry_after_s is not None:
            headers["retry-after"] = str(fault.retry_after_s)
            self._asked_to_wait_at = asyncio.get_running_loop().time()
        content = fault.text.encode() or self._envelope(fault)
        writer.write(_written(fault.status, headers, content))
        await writer.drain()
        return True

    def _envelope(self, fault: Fault) -> bytes:
        envelope: dict[str, Any] = {
            "error": f"injected: {fault.code}",
            "code": fault.code,
            "retryable": fault.status in (425, 429, 500, 503),
            "docs_url": f"{self.docs_url}#{fault.code}",
        }
        return json.dumps(envelope).encode()

    async def _forwarded(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> httpx2.Response:
        assert self._http is not None
        kept = {name: value for name, value in headers.items() if name not in _HOP_BY_HOP}
        kept["accept-encoding"] = "identity"
        return await self._http.request(
            method, self.service_url + path, headers=kept, content=body or None
        )


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "") != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    chunks = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(chunks)


def _written(status: int, headers: Mapping[str, str], content: bytes) -> bytes:
    kept = {name: value for name, value in headers.items() if name.lower() not in _HOP_BY_HOP}
    if status != 204:
        kept["content-length"] = str(len(content))
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in kept.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content
