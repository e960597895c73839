"""One request and its response, optimised for small responses."""

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent, HTTPResponseStartEvent

#: Maximum bytes of a body that is written together with its head; a longer one is not copied for it.
MOST_TOGETHER = 64 * 1024

#: Headers that control the connection, and statuses without a body: uvicorn handles these.
_UNUSUAL = frozenset({b"connection", b"transfer-encoding"})
_BODILESS = frozenset({204, 304})

_LENGTH = b"content-length"


class Exchange(RequestResponseCycle):
    """uvicorn's cycle, which waits for the body before it sends the head."""

    #: A buffered head whose body follows immediately, because its length is known.
    _head: "HTTPResponseStartEvent | None" = None

    async def send(self, message: "ASGISendEvent") -> None:
        if self._head is not None:
            head, self._head = self._head, None
            self.response_started = False
            if message["type"] == "http.response.body" and self._sent_together(
                head, message.get("body", b""), more=message.get("more_body", False)
            ):
                return
            await super().send(head)
        elif message["type"] == "http.response.start" and self._may_wait(message):
            self._head = message
            # Once the head is buffered, an error response is no longer possible.
            self.response_started = True
            return
        await super().send(message)

    def _may_wait(self, head: "HTTPResponseStartEvent") -> bool:
        if self.response_started or not self.keep_alive or self.scope["method"] == "HEAD":
            return False
        if head["status"] in _BODILESS:
            return False
        names = [name for name, _ in head["headers"]]
        return _LENGTH in names and _UNUSUAL.isdisjoint(names)

    def _sent_together(self, head: "HTTPResponseStartEvent", body: bytes, *, more: bool) -> bool:
        """Whether the complete response was written; False if it needs uvicorn's own path."""
        if more or len(body) > MOST_TOGETHER:
            return False
        if not self.keep_alive or self.flow.write_paused or self.disconnected:
            # The server started to shut down, or the peer disconnected, since the head arrived.
            return False
        headers = [*self.default_headers, *head["headers"]]
        # uvicorn's own regular expressions against header and response splitting: once for all names and
        # once for all values.
        if HEADER_RE.search(b"".join([name for name, _ in headers])):
            return False
        if HEADER_VALUE_RE.search(b"".join([value for _, value in headers])):
            return False
        declared = next(value for name, value in head["headers"] if name == _LENGTH)
        if declared != b"%d" % len(body):
            return False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self.response_started = self.response_complete = True
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[head["status"]], lines, body))
        self.message_event.set()
        self.on_response()
        return True
