"""Waiting for a person to confirm a sign-in in the messenger."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from msgsvc_client._async.calls import AsyncCaller

if TYPE_CHECKING:
    from msgsvc_client.models import SessionStatus

#: Seconds that the service holds one request at most (its parameter `wait`).
LONGEST_WAIT_S = 25

#: Seconds between two questions, should the service answer at once.
INTERVAL_S = 2.0


class _Sessions(Protocol):
    _caller: AsyncCaller

    def get_status(
        self, session_id: str, *, wait: int | None = None, timeout_s: float | None = None
    ) -> Awaitable[SessionStatus]: ...


class AsyncSessionWait:
    """What `client.auth.sessions` has beside the API's own methods."""

    async def wait(self: _Sessions, session_id: str, *, timeout_s: float = 600.0) -> SessionStatus:
        """Returns once the session is no longer pending: `confirmed` with its `code`, `denied`, `expired`.

        The service holds each request until something changes (long polling), so that the answer is there
        at once. After `timeout_s` seconds, at most, the session is returned as it is: `pending`.
        """
        clock = self._caller.clock
        end = clock.monotonic() + timeout_s
        # Half of a call's deadline is left for what may go wrong with it.
        longest = min(LONGEST_WAIT_S, int(self._caller.retries.deadline_s / 2))
        while True:
            begun = clock.monotonic()
            wait = max(0, min(longest, int(end - begun)))
            status = await self.get_status(
                session_id, wait=wait, timeout_s=wait + self._caller.timeout_s
            )
            now = clock.monotonic()
            if status.status != "pending" or now >= end:
                return status
            pause = min(INTERVAL_S - (now - begun), end - now)
            if pause > 0:
                await clock.sleep(pause)
