"""Connections that are open, to be used again; and a limit of how many there are."""

import asyncio
from collections import deque

from msgsvc_core.http_client.connecting import Connector
from msgsvc_core.http_client.connection import Connection
from msgsvc_core.http_client.messages import Origin

#: Seconds for which an unused connection is kept. Servers close theirs after a minute or more, and a request
#: that crosses the server's close on the wire is in doubt.
KEPT_S = 15.0

#: Seconds unused after which the loop is given a turn before the connection is used, so that a close that
#: has arrived meanwhile is seen.
SURELY_OPEN_S = 0.5


class ConnectionPool:
    """At most `limit` connections at a time, None for any number; who waits for one gets it in turn."""

    def __init__(self, connector: Connector, limit: int | None) -> None:
        if limit is not None and limit < 1:
            raise ValueError("a pool needs room for a connection")
        self._connector = connector
        self._limit = limit
        #: Unused connections of each origin, the one that was used last at the end.
        self._idle: dict[Origin, list[Connection]] = {}
        #: Open, being opened, and unused.
        self._count = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def acquire(self, origin: Origin) -> Connection:
        """A connection for one request; `release` must follow. Raises `NotConnected`."""
        connection = self._take(origin)
        if connection is not None:
            if asyncio.get_running_loop().time() - connection.idle_since_s < SURELY_OPEN_S:
                return connection
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                self.release(origin, connection)
                raise
            if connection.is_usable:
                return connection
            self._drop(connection)
        await self._reserve()
        # While it waited for a place, a connection may have become free.
        connection = self._take(origin)
        if connection is not None:
            self._free_place()
            return connection
        try:
            return await self._connector.connect(origin)
        except BaseException:
            self._free_place()
            raise

    def release(self, origin: Origin, connection: Connection) -> None:
        """The request has ended; the connection is kept if it can be used again."""
        if not connection.is_usable or self._is_closed:
            self._drop(connection)
            return
        loop = asyncio.get_running_loop()
        connection.idle_since_s = loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._timer is None:
            self._timer = loop.call_later(KEPT_S, self._expire)
        if self._waiting:
            self._wake_next()

    def close(self) -> None:
        """Closes unused connections; those in use are closed when they are released."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connections in self._idle.values():
            for connection in connections:
                self._count -= 1
                connection.close()
        self._idle.clear()

    def _take(self, origin: Origin) -> Connection | None:
        """The connection that was used last, so that the others can expire."""
        connections = self._idle.get(origin)
        while connections:
            connection = connections.pop()
            if connection.is_usable:
                return connection
            self._drop(connection)
        return None

    async def _reserve(self) -> None:
        """Counts a connection to be opened, once there is a place for it."""
        while self._limit is not None and self._count >= self._limit:
            if self._close_one_unused():
                continue
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    # It was given the place, and can't use it.
                    self._wake_next()
                raise
        self._count += 1

    def _close_one_unused(self) -> bool:
        for connections in self._idle.values():
            if connections:
                self._drop(connections.pop(0))
                return True
        return False

    def _drop(self, connection: Connection) -> None:
        connection.close()
        self._free_place()

    def _free_place(self) -> None:
        self._count -= 1
        self._wake_next()

    def _wake_next(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return

    def _expire(self) -> None:
        """Closes what has been unused for `KEPT_S`, and looks again when the next will have been."""
        self._timer = None
        loop = asyncio.get_running_loop()
        until_s = loop.time() - KEPT_S
        oldest_s = None
        for origin in list(self._idle):
            kept = []
            for connection in self._idle[origin]:
                if connection.is_usable and connection.idle_since_s > until_s:
                    kept.append(connection)
                else:
                    self._drop(connection)
            if not kept:
                del self._idle[origin]
                continue
            self._idle[origin] = kept
            if oldest_s is None or kept[0].idle_since_s < oldest_s:
                oldest_s = kept[0].idle_since_s
        if oldest_s is not None:
            self._timer = loop.call_at(oldest_s + KEPT_S, self._expire)
