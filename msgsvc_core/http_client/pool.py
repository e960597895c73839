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
        self._idle_count = 0
        #: Calls that have a connection, open one, or have just been given the place of another.
        self._busy_count = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self, origin: Origin) -> Connection | None:
        """A connection that was in use a moment ago, or None: then `acquire` has to wait for something."""
        if self._limit is not None and self._busy_count >= self._limit:
            return None
        connection = self._take(origin)
        if connection is None:
            return None
        if asyncio.get_running_loop().time() - connection.idle_since_s >= SURELY_OPEN_S:
            self._idle[origin].append(connection)
            self._idle_count += 1
            return None
        self._busy_count += 1
        return connection

    async def acquire(self, origin: Origin) -> Connection:
        """A connection for one request; `release` must follow. Raises `NotConnected`."""
        if self._limit is not None and self._busy_count >= self._limit:
            await self._wait_in_turn()
        else:
            self._busy_count += 1
        try:
            connection = self._take(origin)
            if connection is not None:
                unused_s = asyncio.get_running_loop().time() - connection.idle_since_s
                if unused_s >= SURELY_OPEN_S:
                    connection = await self._look_again(origin, connection)
            if connection is not None:
                return connection
            self._make_room()
            return await self._connector.connect(origin)
        except BaseException:
            self._leave()
            raise

    def release(self, origin: Origin, connection: Connection) -> None:
        """The request has ended; the connection is kept if it can be used again."""
        self._keep(origin, connection)
        self._leave()

    def close(self) -> None:
        """Closes unused connections; those in use are closed when they are released."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()
        self._idle_count = 0

    async def _wait_in_turn(self) -> None:
        """Waits for the place of a call that ends."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                # It was given the place, and can't use it.
                self._leave()
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def _leave(self) -> None:
        """Gives a call's place to the next."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._busy_count -= 1

    def _keep(self, origin: Origin, connection: Connection) -> None:
        if not connection.is_usable or self._is_closed:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since_s = loop.time()
        self._idle.setdefault(origin, []).append(connection)
        self._idle_count += 1
        if self._timer is None:
            self._timer = loop.call_later(KEPT_S, self._expire)

    def _take(self, origin: Origin) -> Connection | None:
        """The connection that was used last, so that the others can expire."""
        connections = self._idle.get(origin)
        while connections:
            connection = connections.pop()
            self._idle_count -= 1
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def _look_again(self, origin: Origin, connection: Connection) -> Connection | None:
        """The connection, or another of its origin, once the loop has read what had arrived."""
        try:
            # asyncio reads after the first: it runs what was ready before.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self._keep(origin, connection)
            raise
        if connection.is_usable:
            return connection
        connection.close()
        return self._take(origin)

    def _make_room(self) -> None:
        """Closes an unused connection of another origin if a new one would be too many."""
        if self._limit is None or self._busy_count + self._idle_count <= self._limit:
            return
        for connections in self._idle.values():
            if connections:
                connections.pop(0).close()
                self._idle_count -= 1
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
                    self._idle_count -= 1
                    connection.close()
            if not kept:
                del self._idle[origin]
                continue
            self._idle[origin] = kept
            if oldest_s is None or kept[0].idle_since_s < oldest_s:
                oldest_s = kept[0].idle_since_s
        if oldest_s is not None:
            self._timer = loop.call_at(oldest_s + KEPT_S, self._expire)
