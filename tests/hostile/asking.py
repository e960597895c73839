"""Asks the application as its server does, each request from another network: limits of a network's requests
would answer before anything is read."""

from collections.abc import Iterable, Mapping
from http.cookies import SimpleCookie
from itertools import count
from urllib.parse import quote

from starlette.types import ASGIApp

from tests.faults.fuzzing import Reply, call

Headers = tuple[tuple[bytes, bytes], ...]

FORM = b"application/x-www-form-urlencoded"

#: Bytes of a request's head that the server takes at most (`server.max_header_bytes`).
MOST_HEAD_BYTES = 32 * 1024


class Stranger:
    """Somebody without an account. `cookies` are sent with every request."""

    def __init__(self, app: ASGIApp, *, headers: Mapping[str, str] | None = None) -> None:
        self._app = app
        self._headers = tuple((n.encode(), v.encode()) for n, v in (headers or {}).items())
        self._networks = count(1)
        self.cookies: dict[str, str] = {}

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: bytes = b"",
        body: bytes = b"",
        content_type: bytes | None = None,
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> Reply:
        """The answer; `path` is quoted already."""
        sent = [*self._headers, *headers]
        if content_type is not None:
            sent.append((b"content-type", content_type))
        if self.cookies:
            sent.append(
                (b"cookie", "; ".join(f"{n}={v}" for n, v in self.cookies.items()).encode())
            )
        number = next(self._networks)
        client = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        return await call(self._app, method, path, query, tuple(sent), body, client=client)

    def keep(self, reply: Reply) -> None:
        """Takes the cookies of an answer."""
        for line in reply.cookies:
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value


def quoted(text: str, most_bytes: int = MOST_HEAD_BYTES - 2_000) -> str:
    """As a part of a path, no longer than a head may be."""
    return (
        quote(text.encode("utf-8", "surrogatepass"), safe="")[:most_bytes].rpartition("%")[0] or "a"
    )
