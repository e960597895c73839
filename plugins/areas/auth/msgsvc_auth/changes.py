"""Wakes requests that wait for a session to change."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context

import structlog

from msgsvc_core.db import Tx

#: Project and session.
Key = tuple[str, str]

#: Notification topic of changed sessions.
TOPIC = "auth.session"

#: Seconds between polls of the awaited sessions, for changes without a notification: an expired session,
#: or a lost notification of another process.
REREAD_S = 1.0

log = structlog.get_logger(__name__)


class Changes:
    """Wakes waiting requests immediately on a notification, and by polling for all other changes.

    Polling calls `find_changed` with all awaited sessions: one query a second serves thousands of waiting
    requests, and none runs without them. `listen` is `Database.listen`, called on the first wait.
    """

    def __init__(
        self,
        find_changed: Callable[[Sequence[Key]], Awaitable[Iterable[Key]]],
        listen: Callable[[str, Callable[[str], None]], None] | None = None,
    ) -> None:
        self._find_changed = find_changed
        self._listen = listen
        self._waiting: dict[Key, list[asyncio.Future[None]]] = {}
        self._polling: asyncio.Task[None] | None = None
        #: Whether nobody is to wait any longer.
        self.closed = False

    def open(self) -> None:
        """Lets people wait, after a stop too."""
        self.closed = False

    def close(self) -> None:
        """Ends all waits: the server is about to stop."""
        self.closed = True
        for key in list(self._waiting):
            self.notify(key)

    def watch(self, key: Key) -> asyncio.Future[None]:
        """A future for the next change; always call `unwatch` at the end.

        Call `watch` before reading the session: otherwise a change between reading and waiting would be
        missed.
        """
        if self._listen is not None:
            self._listen(TOPIC, self._on_notification)
            self._listen = None
        loop = asyncio.get_running_loop()
        changed = loop.create_future()
        self._waiting.setdefault(key, []).append(changed)
        if self._polling is None:
            # Not the first caller's context: its request id would stand in the logs of all.
            self._polling = loop.create_task(self._poll(), context=Context())
        return changed

    def unwatch(self, key: Key, changed: asyncio.Future[None]) -> None:
        """Ends what `watch` began."""
        waiting = self._waiting[key]
        waiting.remove(changed)
        if waiting:
            return
        del self._waiting[key]
        if not self._waiting and self._polling is not None:
            self._polling.cancel()
            self._polling = None

    @staticmethod
    def notify_on_commit(tx: Tx, key: Key) -> None:
        """Wakes all waiting requests for the session, in every process, once `tx` is committed."""
        tx.notify(TOPIC, " ".join(key))

    def _on_notification(self, text: str) -> None:
        project_id, _, session_id = text.partition(" ")
        self.notify((project_id, session_id))

    def notify(self, key: Key) -> None:
        """Wakes this process's waiting requests for the session. Call it after the commit."""
        for changed in self._waiting.get(key, ()):
            wake(changed)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(REREAD_S)
            keys = list(self._waiting)
            try:
                found = await self._find_changed(keys)
            except Exception:
                # The waiting request reads the session itself and responds with its state.
                log.exception("sessions_not_looked_at", sessions=len(keys))
                found = keys
            for key in found:
                self.notify(key)


def wake(changed: asyncio.Future[None]) -> None:
    """Ends the wait, if it has not ended."""
    if not changed.done():
        changed.set_result(None)
