"""Wakes requests that wait for a session to change."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import Context

import structlog

from msgsvc_core.db import Tx

#: Project and session.
Key = tuple[str, str]

#: Under which transactions tell of a changed session.
TOPIC = "auth.session"

#: Seconds between two looks at the sessions that are waited for: changes that no notice told of,
#: because the session's time is over, or nobody in the other process could tell.
REREAD_S = 1.0

log = structlog.get_logger(__name__)


class Changes:
    """Tells at once of a change that a transaction told of, and soon of every other.

    For the latter it asks `find_changed` which of all the awaited sessions have changed. One query a
    second serves thousands who wait; when nobody does, there is none. `listen` is `Database.listen`,
    called when somebody waits for the first time.
    """

    def __init__(
        self,
        find_changed: Callable[[Sequence[Key]], Awaitable[Iterable[Key]]],
        listen: Callable[[str, Callable[[str], None]], None] | None = None,
    ) -> None:
        self._find_changed = find_changed
        self._listen = listen
        self._waiting: dict[Key, list[asyncio.Future[None]]] = {}
        self._looking: asyncio.Task[None] | None = None
        #: Whether nobody is to wait any longer.
        self.closed = False

    def open(self) -> None:
        """Lets people wait, after a stop too."""
        self.closed = False

    def close(self) -> None:
        """Ends all waits: the server is about to stop."""
        self.closed = True
        for key in list(self._waiting):
            self.tell(key)

    def watch(self, key: Key) -> asyncio.Future[None]:
        """Is done at the next change; `forget` it at the end, whatever the end is.

        Begin to watch before reading the session: what happens between the reading and the waiting
        would go unnoticed otherwise.
        """
        if self._listen is not None:
            self._listen(TOPIC, self._heard)
            self._listen = None
        loop = asyncio.get_running_loop()
        changed = loop.create_future()
        self._waiting.setdefault(key, []).append(changed)
        if self._looking is None:
            # Not the first caller's context: its request id would stand in the logs of all.
            self._looking = loop.create_task(self._look(), context=Context())
        return changed

    def forget(self, key: Key, changed: asyncio.Future[None]) -> None:
        """Ends what `watch` began."""
        waiting = self._waiting[key]
        waiting.remove(changed)
        if waiting:
            return
        del self._waiting[key]
        if not self._waiting and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    @staticmethod
    def tell_on_commit(tx: Tx, key: Key) -> None:
        """Wakes everybody who watches the session, wherever, once `tx` is committed."""
        tx.tell(TOPIC, " ".join(key))

    def _heard(self, text: str) -> None:
        project_id, _, session_id = text.partition(" ")
        self.tell((project_id, session_id))

    def tell(self, key: Key) -> None:
        """Wakes everybody in this process who watches the session. Call it after the commit."""
        for changed in self._waiting.get(key, ()):
            wake(changed)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(REREAD_S)
            keys = list(self._waiting)
            try:
                found = await self._find_changed(keys)
            except Exception:
                # Whoever waits reads for themselves then, and answers with what that comes to.
                log.exception("sessions_not_looked_at", sessions=len(keys))
                found = keys
            for key in found:
                self.tell(key)


def wake(changed: asyncio.Future[None]) -> None:
    """Ends the wait, if it has not ended."""
    if not changed.done():
        changed.set_result(None)
