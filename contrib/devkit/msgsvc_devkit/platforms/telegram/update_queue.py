"""A bot's updates, kept until they are confirmed by getUpdates or accepted by the webhook."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

from msgsvc_devkit.platforms.telegram.calls import Refusal

#: Kinds that Telegram sends only if requested explicitly (Bot API, getUpdates.allowed_updates).
NAMED_ONLY = frozenset({"chat_member", "message_reaction", "message_reaction_count"})

WEBHOOK_IS_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active;"
    " use deleteWebhook to delete the webhook first"
)
OTHER_GET_UPDATES = (
    "Conflict: terminated by other getUpdates request;"
    " make sure that only one bot instance is running"
)


@dataclass(slots=True)
class Webhook:
    """The webhook that gets updates, if `url` is not empty."""

    url: str = ""
    secret: str = ""
    last_error: str = ""
    #: Time in Unix seconds.
    last_error_at: int = 0


class UpdateQueue:
    """Updates in order. Confirmed ones are removed: those below getUpdates' offset, or accepted by POST."""

    def __init__(self, first_id: int) -> None:
        self._ids = count(first_id)
        self._waiting: list[dict[str, Any]] = []
        #: Updates that are sent again although they were confirmed.
        self._again: list[dict[str, Any]] = []
        self._sent: dict[int, dict[str, Any]] = {}
        self._allowed: frozenset[str] | None = None
        self._arrived = asyncio.Event()
        self._polling: asyncio.Future[None] | None = None
        self.webhook = Webhook()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._again)

    def allow(self, kinds: Iterable[str]) -> None:
        """Keeps only these kinds from now on; an empty list means all but `NAMED_ONLY`."""
        self._allowed = frozenset(kinds) or None

    def add(self, kind: str, content: dict[str, Any]) -> int | None:
        """Adds an update and returns its id; None if this kind is not allowed."""
        wanted = kind not in NAMED_ONLY if self._allowed is None else kind in self._allowed
        if not wanted:
            return None
        update_id = next(self._ids)
        self.put({"update_id": update_id, kind: content})
        return update_id

    def put(self, update: dict[str, Any]) -> None:
        """Adds an update unchecked, also a malformed one."""
        update_id = _id_of(update)
        if update_id is not None:
            self._sent[update_id] = update
        self._waiting.append(update)
        self._arrived.set()

    def puzzle(self, content: dict[str, Any]) -> int:
        """Adds an update with arbitrary content; returns its id."""
        update_id = next(self._ids)
        self.put({"update_id": update_id, **content})
        return update_id

    @property
    def sent_ids(self) -> list[int]:
        """The ids of all updates so far, oldest first."""
        return list(self._sent)

    @property
    def confirmed_ids(self) -> list[int]:
        """Those that the bot has confirmed."""
        waiting = {_id_of(update) for update in self._waiting}
        return [update_id for update_id in self._sent if update_id not in waiting]

    def sent(self, update_id: int) -> dict[str, Any]:
        """An update as it was sent."""
        return self._sent[update_id]

    def repeat(self, update_id: int, times: int = 1) -> None:
        """Sends an update again, as after a lost response."""
        self._again += [self._sent[update_id]] * times
        self._arrived.set()

    def drop(self) -> None:
        self._waiting.clear()
        self._again.clear()

    async def poll(self, offset: int, limit: int, timeout_s: float) -> list[dict[str, Any]]:
        """getUpdates. A later call terminates an earlier one with 409."""
        if self.webhook.url:
            raise Refusal(409, WEBHOOK_IS_ACTIVE)
        if self._polling is not None and not self._polling.done():
            self._polling.set_result(None)
        mine = self._polling = asyncio.get_running_loop().create_future()
        self._confirm(offset)
        if not len(self) and timeout_s:
            await self._wait(mine, timeout_s)
        if mine.done():
            raise Refusal(409, OTHER_GET_UPDATES)
        mine.set_result(None)
        if self._again:
            again, self._again = self._again, []
            return again
        found = self._waiting[:limit]
        # An update without an id could never be confirmed.
        self._waiting = [update for update in self._waiting if _id_of(update) is not None]
        return found

    async def next(self) -> dict[str, Any]:
        """The first pending update, for a webhook; it stays until it is `taken`."""
        while not len(self) or not self.webhook.url:
            self._arrived.clear()
            await self._arrived.wait()
        return (self._again or self._waiting)[0]

    def taken(self, update: dict[str, Any]) -> None:
        for kept in (self._again, self._waiting):
            # Compared as objects: a repeated update equals the first.
            if kept and kept[0] is update:
                del kept[0]
                return

    def wake(self) -> None:
        """Wakes waiting tasks, after the webhook was changed."""
        self._arrived.set()

    def end_polling(self, why: str) -> None:
        if self._polling is not None and not self._polling.done():
            self._polling.set_exception(Refusal(409, why))

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            del self._waiting[:offset]
        elif offset > 0:
            self._waiting = [
                update for update in self._waiting if (_id_of(update) or offset) >= offset
            ]

    async def _wait(self, ended: asyncio.Future[None], timeout_s: float) -> None:
        """Waits until an update arrives, the timeout expires, or another call terminates this one."""
        self._arrived.clear()
        arrived = asyncio.ensure_future(self._arrived.wait())
        either: set[asyncio.Future[Any]] = {arrived, ended}
        try:
            await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrived.cancel()
        if ended.done():
            ended.result()


def _id_of(update: dict[str, Any]) -> int | None:
    update_id = update.get("update_id")
    return update_id if isinstance(update_id, int) else None
