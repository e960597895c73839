"""The bot's updates: a queue with a marker, or webhook calls."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from msgsvc_devkit.platforms.max.refusals import Refused

#: Seconds before each retry of a webhook call. The platform waits 60, and 2.5 times as long each time.
RETRY_WAITS_S = tuple(0.05 * 1.5**number for number in range(10))


@dataclass(slots=True)
class Subscription:
    """The URL for updates, and their types."""

    url: str
    secret: str | None
    types: frozenset[str] | None


class Updates:
    """Numbers updates and delivers them."""

    def __init__(self) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        #: All updates, as they were sent.
        self.all: list[dict[str, Any]] = []
        #: How often the platform sends each update, as if responses had been lost.
        self.repeats = 1
        #: Statuses of the webhook's responses, in order; 0 is no response.
        self.webhook_answers: list[int] = []
        self._queue: list[tuple[int, dict[str, Any]]] = []
        self._next = 25_493_970
        self._news = asyncio.Event()
        self._calls: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Task[None] | None = None

    @property
    def next_marker(self) -> int:
        """The marker that acknowledges all updates."""
        return self._next

    def tell(self, update: dict[str, Any]) -> None:
        """Queues the update for delivery."""
        self.all.append(update)
        if not self.subscriptions:
            for _ in range(self.repeats):
                self._queue.append((self._next, update))
                self._next += 1
            self._news.set()
            self._news = asyncio.Event()
            return
        # One after the other, to keep the order.
        self._turn = asyncio.create_task(self._deliver(update, self._turn))
        self._calls.add(self._turn)
        self._turn.add_done_callback(self._calls.discard)

    async def poll(
        self, marker: int | None, timeout_s: int, limit: int, types: Collection[str]
    ) -> dict[str, Any]:
        """The schema's UpdateList. Raises `Refused` while a webhook is set."""
        if self.subscriptions:
            raise Refused(405, "method.not.allowed", "There is a webhook subscription")
        if marker is not None:
            self._queue = [entry for entry in self._queue if entry[0] >= marker]
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not (found := self._wanted(types)):
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError:
                break
        taken = found[:limit]
        if marker is None:
            # "Without a marker you get only the latest update."
            taken = found[-1:]
        after = taken[-1][0] + 1 if taken else self._next
        return {"updates": [update for _, update in taken], "marker": after}

    async def close(self) -> None:
        for call in list(self._calls):
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    def _wanted(self, types: Collection[str]) -> list[tuple[int, dict[str, Any]]]:
        # One without a type, or with an odd one, is given to everybody: the fake is to misbehave.
        return [
            entry
            for entry in self._queue
            if not types
            or not isinstance(kind := entry[1].get("update_type"), str)
            or kind in types
        ]

    async def _deliver(self, update: dict[str, Any], before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        for subscription in list(self.subscriptions.values()):
            kind, types = update.get("update_type"), subscription.types
            if types is None or not isinstance(kind, str) or kind in types:
                for _ in range(self.repeats):
                    await self._call(subscription, update)

    async def _call(self, subscription: Subscription, update: dict[str, Any]) -> None:
        headers = {"X-Max-Bot-Api-Secret": subscription.secret} if subscription.secret else {}
        async with ClientSession(timeout=ClientTimeout(total=30)) as session:
            for wait_s in (*RETRY_WAITS_S, None):
                status = 0
                try:
                    async with session.post(
                        subscription.url, json=update, headers=headers
                    ) as answer:
                        status = answer.status
                except (ClientError, TimeoutError):
                    pass
                self.webhook_answers.append(status)
                if status == 200 or wait_s is None:
                    return
                await asyncio.sleep(wait_s)
