"""uvicorn's server with connection limits and a drain; its owner stops it."""

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from msgsvc_core.server.connection import GuardedConnection
from msgsvc_core.server.connection_limits import ConnectionLimits, LimitedConnection

#: Seconds that open requests get at shutdown; live pages and long polls would never end.
GRACEFUL_S = 5

#: Seconds of one turn of the main loop, as in uvicorn.
TICK_S = 0.1

#: Turns of the main loop between two sweeps of all connections.
SWEEP_TICKS = 10

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """Serves `app` within the limits of `guard`; `listening` is called once it accepts requests, `stopping`
    when it stops accepting.

    With `signals` it stops on SIGINT or SIGTERM; without, when `should_exit` is set. Between SIGTERM and the
    stop it serves for `drain_s` seconds more, and calls `draining` at their start.
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
        config = uvicorn.Config(
            app,
            loop="uvloop",
            # uvicorn calls it with its usual four arguments.
            http=cast("type[asyncio.Protocol]", partial(GuardedConnection, guard)),
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
        self._signals = SIGNALS if signals else ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listening(sockets or [])

    async def main_loop(self) -> None:
        await super().main_loop()
        if self._drain_s:
            self._draining()
            self._guard.draining = True
            await self._serve_on()

    async def _serve_on(self) -> None:
        loop = asyncio.get_running_loop()
        began_s, ticks = loop.time(), 0
        while loop.time() < began_s + self._drain_s:
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
        for number in self._signals:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in self._signals:
                loop.remove_signal_handler(number)
