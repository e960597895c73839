"""uvicorn's server with connection limits and a drain; its owner stops it."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from msgsvc_core.server.connection import GuardedConnection
from msgsvc_core.server.connection_limits import ConnectionLimits, LimitedConnection
from msgsvc_core.server.unix_socket import UnixListener

#: Seconds that open requests get at shutdown; live pages and long polls would never end.
GRACEFUL_S = 5

#: Seconds after a drain for which connections that are there are still served: a proxy may have begun to send
#: a request on one. New ones are refused meanwhile, upon which a proxy takes its next upstream.
LAST_S = 1.0

#: Seconds of one turn of the main loop, as in uvicorn.
TICK_S = 0.1

#: Turns of the main loop between two sweeps of all connections.
SWEEP_TICKS = 10

#: SIGHUP comes when the terminal closes: a stop in order, as by SIGTERM.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Server(uvicorn.Server):
    """Serves `app` within the limits of `guard`; `listening` is called once it accepts requests, `stopping`
    when it stops accepting.

    With `signals` it stops on SIGINT, SIGTERM or SIGHUP; without, when `should_exit` is set. Between SIGTERM
    and the stop it serves for `drain_s` seconds more, and calls `draining` at their start.
    """

    def __init__(
        self,
        app: ASGIApp,
        guard: ConnectionLimits,
        *,
        listening: Callable[[list[socket.socket]], None] = lambda _sockets: None,
        draining: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
        drain_s: float = 0.0,
        signals: bool = True,
    ) -> None:
        self._connect = partial(GuardedConnection, guard)
        config = uvicorn.Config(
            app,
            loop="uvloop",
            # uvicorn calls it with its usual four arguments.
            http=cast("type[asyncio.Protocol]", self._connect),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            # uvicorn would trust X-Forwarded-For of any local process; the setting
            # server.trusted_proxies decides instead.
            proxy_headers=False,
            timeout_graceful_shutdown=GRACEFUL_S,
        )
        super().__init__(config)
        self._guard = guard
        self._listening = listening
        self._draining = draining
        self._stopping = stopping
        self._drain_s = drain_s
        self._signals = STOP_SIGNALS if signals else ()
        self._sockets: list[socket.socket] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        for each in sockets or []:
            # uvloop would not notice that another process listens there by now.
            each.listen(self.config.backlog)
        await super().startup(sockets)
        self._sockets = sockets or []
        self._listening(self._sockets)

    async def main_loop(self) -> None:
        await super().main_loop()
        if self._drain_s:
            self._draining()
            self._guard.draining = True
            await self._serve_on(lambda: self._drain_s)
            await self._close_listeners()
            await self._serve_on(lambda: min(self._drain_s, LAST_S))

    async def _close_listeners(self) -> None:
        """Takes connections that the kernel has made already: closing would reset them, and proxies don't
        repeat a POST."""
        queues = [socket.socket(fileno=os.dup(each.fileno())) for each in self._sockets]
        for each in self._sockets:
            if isinstance(each, UnixListener):
                each.remove_file()
        for listening in self.servers:
            listening.close()
        loop = asyncio.get_running_loop()
        for taken in [each for queue in queues for each in _taken(queue)]:
            await loop.connect_accepted_socket(self._connection, taken)

    def _connection(self) -> asyncio.Protocol:
        return self._connect(self.config, self.server_state, self.lifespan.state)

    async def _serve_on(self, seconds: Callable[[], float]) -> None:
        """For so many seconds, of which a second signal leaves none."""
        loop = asyncio.get_running_loop()
        began_s, ticks = loop.time(), 0
        while loop.time() < began_s + seconds():
            ticks += 1
            await asyncio.sleep(TICK_S)
            await self.on_tick(ticks)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGINT or self.should_exit:
            # Ctrl-C, or somebody who has no time.
            self._drain_s = 0.0
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        if counter % SWEEP_TICKS == 0:
            self._guard.sweep(cast("set[LimitedConnection]", self.server_state.connections))
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn re-raises the signal when it is done, which would kill the process immediately, with jobs
        and leases unfinished."""
        loop = asyncio.get_running_loop()
        handled = list(heeded(self._signals))
        for number in handled:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)


def _taken(queue: socket.socket) -> list[socket.socket]:
    """The connections that wait in the queue of a listening socket, which is closed."""
    found = []
    queue.setblocking(False)
    # Until none is left, or no file descriptor.
    with queue, suppress(OSError):
        while True:
            found.append(queue.accept()[0])
    return found


def heeded(signals: Iterable[signal.Signals]) -> Iterator[signal.Signals]:
    """Those that are not ignored: `nohup` has a process ignore SIGHUP, and that stays so."""
    for number in signals:
        if signal.getsignal(number) is not signal.SIG_IGN:
            yield number
