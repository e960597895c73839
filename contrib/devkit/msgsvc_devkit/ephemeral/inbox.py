"""Webhook requests that are kept for a test, which passes them to the program under test itself."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Paths below which the requests arrive: none of the service's own.
PATH = "/-/webhook-inbox/"


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """A webhook as the service sent it: POST `body` with `headers` to the program under test."""

    event: str
    headers: dict[str, str]
    body: bytes


class Inboxes:
    """An ASGI application that answers 200, and keeps what it gets by the last part of the path."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._kept: dict[str, list[SignedRequest]] = {}

    def open(self) -> str:
        """The URL of a new inbox."""
        name = str(len(self._kept) + 1)
        self._kept[name] = []
        return f"{self._base_url}{PATH}{name}"

    def take(self, url: str) -> list[SignedRequest]:
        """The requests to that URL that were not taken yet, oldest first. Raises `ValueError` for a URL that
        `open` did not return."""
        before, path, name = url.partition(PATH)
        if not path or before != self._base_url or name not in self._kept:
            raise ValueError(f"requests to {url} are not kept: that webhook has a URL of its own")
        taken, self._kept[name] = self._kept[name], []
        return taken

    def clear(self) -> None:
        """Closes all of them."""
        self._kept.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        kept = self._kept.get(request.url.path.removeprefix(PATH))
        if kept is None:
            await Response(status_code=410)(scope, receive, send)
            return
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in {"host", "content-length", "connection"}
        }
        event = next((headers[name] for name in headers if name.endswith("-event")), "")
        kept.append(SignedRequest(event, headers, body))
        await Response()(scope, receive, send)
