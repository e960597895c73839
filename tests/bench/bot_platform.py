"""A Bot API without people: it answers what bots ask at their start, and holds their long polls.

`GET /polling` answers with how many bots have a poll held now.
"""

import asyncio
import json
import re
import signal
import socket
from typing import cast

import uvloop

_END = b"\r\n\r\n"
_CALL = re.compile(rb"^\w+ /bot(\d+):[^/]*/(\w+)")
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_TIMEOUT = re.compile(rb'"timeout": *(\d+)')

#: Bots with a poll that is held.
_polling: dict[bytes, int] = {}


class BotPlatform(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._received = b""
        self._held: tuple[bytes, asyncio.TimerHandle] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(_END)) >= 0:
            head = self._received[:end]
            length = _LENGTH.search(head)
            whole = end + len(_END) + int(length[1] if length else 0)
            if len(self._received) < whole:
                return
            body, self._received = self._received[end:whole], self._received[whole:]
            self._take(head, body)

    def connection_lost(self, error: Exception | None) -> None:
        self._let_go()

    def _take(self, head: bytes, body: bytes) -> None:
        call = _CALL.match(head)
        if call is None:
            self._answer(json.dumps(len(_polling)).encode())
            return
        bot, method = call[1], call[2].lower()
        if method == b"getme":
            name = b"bench_%s_bot" % bot
            self._result(
                b'{"id":%s,"is_bot":true,"first_name":"Bench","username":"%s"}' % (bot, name)
            )
        elif method == b"getwebhookinfo":
            self._result(b'{"url":"","has_custom_certificate":false,"pending_update_count":0}')
        elif method == b"getupdates":
            self._hold(bot, int(found[1]) if (found := _TIMEOUT.search(body)) else 0)
        else:
            self._result(b"true")

    def _hold(self, bot: bytes, seconds: int) -> None:
        _polling[bot] = _polling.get(bot, 0) + 1
        timer = asyncio.get_running_loop().call_later(seconds, self._give_nothing)
        self._held = bot, timer

    def _give_nothing(self) -> None:
        self._let_go()
        self._result(b"[]")

    def _let_go(self) -> None:
        if self._held is None:
            return
        (bot, timer), self._held = self._held, None
        timer.cancel()
        _polling[bot] -= 1
        if not _polling[bot]:
            del _polling[bot]

    def _result(self, result: bytes) -> None:
        self._answer(b'{"ok":true,"result":%s}' % result)

    def _answer(self, body: bytes) -> None:
        self._transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )


async def main() -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    server = await loop.create_server(BotPlatform, sock=listening)
    port = listening.getsockname()[1]
    print(f"bots are answered: it listens on http://127.0.0.1:{port}, always", flush=True)  # noqa: T201 - its starter reads it
    await ended.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(main())
