"""A transport that sends a response's head and body in one packet, and closes without losing it.

uvicorn writes them separately, and uvloop passes each write to the kernel immediately. The second system
call, with its packet and wake-up at the peer, cost an eighth of the throughput of small responses.

Closing a socket while its peer still sends resets it, and the response is lost: a proxy then reports 502
instead of our 413.
"""

import asyncio
from collections.abc import Callable
from typing import Any

#: Maximum bytes buffered. A long response is sent as it is produced, so that a slow reader is noticed.
MOST_HELD = 64 * 1024


class BufferedTransport(asyncio.Transport):
    """Buffers writes until the next iteration of the event loop, and sends them in one piece.

    Closed while the peer `is_sending`, it only shuts down the write side (RFC 9112, section 9.6); the
    connection is closed once the rest has been read.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        is_sending: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._is_sending = is_sending
        self._is_half_closed = False
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > MOST_HELD:
            self.flush()

    def flush(self) -> None:
        """Sends the buffered data."""
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._size = 0
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        if self._may_half_close():
            self._is_half_closed = True
            self._transport.write_eof()
        else:
            self._transport.close()

    def _may_half_close(self) -> bool:
        if self._is_sending is None or self._is_half_closed or self._transport.is_closing():
            return False
        return self._is_sending()

    def lost(self) -> None:
        """Releases the callback, which refers back to this transport."""
        self._is_sending = None

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._is_half_closed or self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + self._size

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._transport.get_protocol()
