"""Follows a feed and forwards its events, through failures of the service."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from msgsvc_core.events import Event
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.security.guard import OutboundGuard
from msgsvc_webhooks.listening.feed import EventFeed, FeedUnavailable
from msgsvc_webhooks.models import Attempt, Delivery
from msgsvc_webhooks.sender import Sender
from msgsvc_webhooks.service import body_of
from msgsvc_webhooks.settings import WebhookSettings

T = TypeVar("T")

#: Seconds between two reads of the feed.
EVERY_S = 1.0

#: Seconds until the service is asked again after a failure: doubled each time, up to the second.
FIRST_WAIT_S, MOST_WAIT_S = 1.0, 30.0

#: The developer's own machine is what the guard is for elsewhere.
EVERYWHERE = ("0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An event, and what became of its request."""

    delivery: Delivery
    attempt: Attempt

    @property
    def is_accepted(self) -> bool:
        """Whether the receiver answered 2xx."""
        status = self.attempt.status_code
        return self.attempt.error is None and status is not None and 200 <= status < 300


class Forwarder:
    """POSTs events to one URL, each once, signed as the service signs them."""

    def __init__(self, url: str, secret: str, clock: Clock, header_prefix: str) -> None:
        guard = OutboundGuard(EVERYWHERE, allow_http=True)
        guard.check_url(url)
        self._url = url
        self._secret = secret
        self._clock = clock
        self._sender = Sender(WebhookSettings(), guard, clock, header_prefix)

    async def close(self) -> None:
        await self._sender.close()

    async def forward(self, event: Event) -> Forwarded:
        """Sends the request that a webhook would get, with a delivery id of its own."""
        now_ms = self._clock.now_ms()
        delivery = Delivery(
            project_id="",
            delivery_id=new_id("whd"),
            webhook_id="",
            event_id=event.event_id,
            event=event.name,
            body=body_of(event),
            status="pending",
            attempts=0,
            step=0,
            created_at_ms=now_ms,
            first_attempt_at_ms=None,
            next_attempt_at_ms=now_ms,
            finished_at_ms=None,
        )
        return Forwarded(delivery, await self._sender.send(self._url, delivery, [self._secret]))


class Listener:
    """Forwards what happens, until it is cancelled.

    `show` is called with each forwarded event, `warn` with what is wrong with the service, once for each
    failure in a row of its kind, and when it is well again.
    """

    def __init__(
        self,
        feed: EventFeed,
        forwarder: Forwarder,
        *,
        names: Collection[str],
        show: Callable[[Forwarded], None],
        warn: Callable[[str], None],
        every_s: float = EVERY_S,
    ) -> None:
        self._feed = feed
        self._forwarder = forwarder
        self._names = names
        self._show = show
        self._warn = warn
        self._every_s = every_s
        self._wait_s = 0.0
        self._failure: str | None = None

    async def run(self, on_ready: Callable[[], None], after: str | None = None) -> None:
        """Begins after an id, or with what happens from now on. Raises `FeedRefused`."""
        if after is None:
            await self._answered(self._feed.start_at_end)
        else:
            self._feed.start_after(after)
        events, more = await self._answered(self._feed.read)
        on_ready()
        while True:
            for event in events:
                if not self._names or event.name in self._names:
                    self._show(await self._forwarder.forward(event))
            if not more:
                await asyncio.sleep(self._every_s)
            events, more = await self._answered(self._feed.read)

    async def _answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """What `call` returns once the service answers."""
        while True:
            try:
                answer = await call()
            except FeedUnavailable as error:
                self._failed(error)
                await asyncio.sleep(self._wait_s)
            else:
                self._succeeded()
                return answer

    def _failed(self, error: FeedUnavailable) -> None:
        self._wait_s = min(MOST_WAIT_S, self._wait_s * 2 or FIRST_WAIT_S)
        if error.retry_after_s is not None:
            self._wait_s = max(self._wait_s, error.retry_after_s)
        if self._failure != str(error):
            self._warn(f"{error}; trying again")
        self._failure = str(error)

    def _succeeded(self) -> None:
        if self._failure is not None:
            self._warn("the service answers again")
        self._failure, self._wait_s = None, 0.0
