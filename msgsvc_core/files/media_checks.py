"""Checks of files before messages are sent, shared by all messages with the same file.

Hosts may be slow, and a bot's other messages must not wait for them: the caller gets the current state of
the check, and may wait for up to `media.check_wait_s` from its start, unless the host is known to be slow.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from weakref import WeakValueDictionary

import structlog
from yarl import URL

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.outgoing import Media
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.clock import Clock

#: Seconds for which a result is cached: that a file can be sent, that it can't, and that its host is
#: unavailable.
FIT_S, UNFIT_S, AWAY_S = 300.0, 60.0, 0.5

#: Maximum number of cached results.
KEPT = 1000

#: Concurrent requests in total and per host.
MOST, MOST_OF_HOST = 100, 10

#: Maximum checks without a result, in total and per host. More would wait too long and cost memory, and one
#: slow host must not take them all.
MOST_OPEN, MOST_OPEN_OF_HOST = KEPT, KEPT // 2

#: Seconds for which a host counts as slow after a wait timed out, and how many such hosts are remembered.
SLOW_S, SLOW_HOSTS = 60.0, 1000

#: Minimum seconds before a waiting caller checks again, doubled each time.
LOOK_AGAIN_S = 1.0

_Key = tuple[str, str, str | None]

log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Check:
    """A check of a file, with its result once `done`: `failure` is why it can't be sent."""

    host: str
    started_at_s: float
    #: End of the waiting time; like `started_at_s` by the machine's monotonic clock.
    patience_ends_s: float
    done: bool = False
    failure: DeliveryError | None = None
    #: Expiry of the result, by `clock.monotonic_ms`.
    until_ms: int = 0
    #: None once it is done, and if there were too many checks.
    task: "asyncio.Task[None] | None" = None
    #: Minimum seconds before the next look at the result.
    least_s: float = LOOK_AGAIN_S

    @property
    def may_wait(self) -> bool:
        """Whether the result may still arrive within the waiting time."""
        return not self.done and time.monotonic() < self.patience_ends_s

    @property
    def retry_in_s(self) -> float:
        """Seconds until the caller should look at the result again, while there is none."""
        return max(self.least_s, time.monotonic() - self.started_at_s)


class MediaChecks:
    """`service.media.checks`. `inspect` raises `DeliveryError` for a file that can't be sent, or not now."""

    def __init__(
        self, *, clock: Clock, settings: MediaSettings, inspect: Callable[[Media], Awaitable[None]]
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._inspect = inspect
        self._known: dict[_Key, Check] = {}
        #: Number of unfinished checks by host.
        self._open: Counter[str] = Counter()
        self._slots = asyncio.Semaphore(MOST)
        #: Time until which a host counts as slow.
        self._slow: dict[str, float] = {}
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def get(self, files: Sequence[Media]) -> list[Check]:
        """The check of each file; starts missing ones, unless there are too many."""
        return [self._check(media) for media in files]

    async def wait(self, checks: Sequence[Check]) -> None:
        """Waits until all are done, or the waiting time of the others is over."""
        new = {check.task: check for check in checks if check.task is not None and check.may_wait}
        if new:
            last_s = max(check.patience_ends_s for check in new.values())
            await asyncio.wait(new, timeout=max(0.0, last_s - time.monotonic()))
        for check in new.values():
            if not check.done:
                self._record_pace(check)

    async def close(self) -> None:
        """Cancels all checks."""
        await cancel_and_wait(
            *[check.task for check in self._known.values() if check.task is not None]
        )

    def _check(self, media: Media) -> Check:
        # Only for a document is the name relevant.
        key = media.type, media.url, media.filename if media.type == "document" else None
        known = self._known.get(key)
        if known is not None and (not known.done or known.until_ms > self._now_ms()):
            return known
        host, now_s = URL(media.url).authority, time.monotonic()
        if self._open[host] >= MOST_OPEN_OF_HOST or self._open.total() >= MOST_OPEN:
            # By then the running checks have results.
            return Check(host, now_s, now_s, least_s=self._settings.check_timeout_s)
        self._evict_oldest()
        self._known.pop(key, None)
        patience_s = self._settings.check_wait_s if self._slow.get(host, 0.0) <= now_s else 0.0
        check = self._known[key] = Check(host, now_s, now_s + patience_s)
        self._open[host] += 1
        # An empty context: otherwise this caller's request id would appear in the logs of all.
        check.task = asyncio.create_task(self._run(media, check), context=Context())
        return check

    async def _run(self, media: Media, check: Check) -> None:
        try:
            await self._request_host(media, check.host)
            kept_s = FIT_S
        except DeliveryError as error:
            check.failure = error
            kept_s = UNFIT_S if error.reason is Reason.INVALID_MESSAGE else AWAY_S
        except Exception as error:
            log.exception("media_check_failed")
            why = f"media.url: it could not be looked at ({type(error).__name__})"
            check.failure, kept_s = DeliveryError(Reason.PLATFORM_UNAVAILABLE, why), AWAY_S
        check.until_ms = self._now_ms() + round(kept_s * 1000)
        self._record_pace(check)
        check.done, check.task = True, None
        self._open[check.host] -= 1
        if not self._open[check.host]:
            del self._open[check.host]

    def _record_pace(self, check: Check) -> None:
        """Records whether the host responds within the waiting time."""
        now_s = time.monotonic()
        if now_s - check.started_at_s < self._settings.check_wait_s:
            self._slow.pop(check.host, None)
            return
        if len(self._slow) >= SLOW_HOSTS:
            self._slow.clear()
        self._slow[check.host] = now_s + SLOW_S

    async def _request_host(self, media: Media, host: str) -> None:
        of_host = self._hosts.setdefault(host, asyncio.Semaphore(MOST_OF_HOST))
        async with of_host, self._slots:
            timeout_s = self._settings.check_timeout_s
            try:
                async with asyncio.timeout(timeout_s):
                    await self._inspect(media)
            except TimeoutError:
                raise DeliveryError(
                    Reason.PLATFORM_UNAVAILABLE,
                    f"media.url: its host took more than {timeout_s:g} s",
                ) from None

    def _evict_oldest(self) -> None:
        if len(self._known) >= KEPT:
            oldest = next((key for key, check in self._known.items() if check.done), None)
            if oldest is not None:
                del self._known[oldest]

    def _now_ms(self) -> int:
        return self._clock.monotonic_ms()
