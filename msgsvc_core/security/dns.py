"""DNS lookups of host names that tenants supply, isolated from all other lookups.

The system resolver blocks a thread until the name server answers, and no timeout frees that thread. In the
event loop's default thread pool a few slow names would block all new connections. Each lookup therefore
runs in a thread of its own and holds a slot until the thread returns. Domains that were slow get few slots,
so they cannot exhaust those of others.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import Context
from enum import Enum, auto
from functools import partial
from threading import Thread
from typing import Any
from weakref import WeakValueDictionary

from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.values import value_object
from msgsvc_core.security.recent_names import RecentNames

#: Seconds for which a caller waits for a result, or for a slot; less than the timeout of a webhook's attempt,
#: and enough for the system's resolver to retry, which it does after 5.
PATIENCE_S = 8.0

#: Seconds from which on a lookup counts as slow. Name servers take some tens of milliseconds.
QUICK_S = 2.0

#: Seconds for which a name that was slow and then failed is not looked up again.
GIVEN_UP_S = 10.0

#: Seconds for which one slow name marks its whole domain as slow.
SLOW_S = 300.0

#: Seconds for which a quickly resolved name uses slots that new names can't take.
KNOWN_S = 24 * 3600.0

#: Concurrent lookups per domain: its owner can invent any number of slow names.
MOST_OF_DOMAIN = 4

#: Second-level labels under which registries delegate names.
REGISTRIES = frozenset(
    {"ac", "co", "com", "edu", "go", "gob", "gouv", "gov", "ltd", "mil"}
    | {"msk", "ne", "net", "or", "org", "plc", "pp", "sch", "spb"}
)

#: Address families and addresses, as `socket.getaddrinfo` has them.
Found = Sequence[tuple[Any, ...]]

#: Calls the system's resolver; blocks. Raises `OSError`.
Ask = Callable[[str, int, socket.AddressFamily], Found]


class HostClass(Enum):
    """Classes of names by recent lookups; each has its own slots."""

    KNOWN = auto()  # it was answered quickly
    NEW = auto()  # nothing
    SLOW = auto()  # it was slow, or another of its domain


#: Concurrent lookups in total. Blocking the 24 slots for new names takes six domains, which then count as
#: slow.
PLACES = {HostClass.KNOWN: 32, HostClass.NEW: 24, HostClass.SLOW: 8}


def query_system(host: str, port: int, family: socket.AddressFamily) -> Found:
    return socket.getaddrinfo(
        host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )


@value_object
class _Lookup:
    """A lookup that is running, or waits for a slot."""

    #: Start of the lookup, monotonic seconds.
    since_s: float
    answer: "asyncio.Future[Found]"
    task: "asyncio.Task[Found]"


class HostResolver:
    """Looks up names for one event loop, by `query` or else `query_system`.

    `now` is a monotonic clock, in seconds.
    """

    def __init__(
        self,
        query: Ask | None = None,
        *,
        patience_s: float = PATIENCE_S,
        quick_s: float = QUICK_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._query = query
        self._patience_s = patience_s
        self._quick_s = quick_s
        self._now = now
        self._under_way: dict[tuple[str, int], _Lookup] = {}
        self._places = {standing: asyncio.Semaphore(limit) for standing, limit in PLACES.items()}
        self._domains: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._known = RecentNames(KNOWN_S, now)
        self._slow_domains = RecentNames(SLOW_S, now)
        self._given_up = RecentNames(GIVEN_UP_S, now)

    async def resolve(self, host: str, port: int, family: socket.AddressFamily) -> Found:
        """The system resolver's answer; its port may be another caller's.

        Raises `OSError`: the resolver's own, or `EAI_AGAIN` on timeout. That is immediate for a name that
        timed out before. Concurrent calls for one name share one lookup.
        """
        key = host, int(family)
        lookup = self._under_way.get(key)
        if lookup is None:
            if host in self._given_up:
                raise _no_answer(host)
            lookup = self._under_way[key] = self._start(host, port, family)
        left_s = lookup.since_s + self._patience_s - self._now()
        if left_s <= 0:
            raise _no_answer(host)
        try:
            async with asyncio.timeout(left_s):
                return await asyncio.shield(lookup.answer)
        except TimeoutError:
            raise _no_answer(host) from None

    async def close(self) -> None:
        """Waiting callers get an error; threads end when their name servers answer, or with the process."""
        await cancel_and_wait(*[lookup.task for lookup in self._under_way.values()])

    def _start(self, host: str, port: int, family: socket.AddressFamily) -> _Lookup:
        answer = asyncio.get_running_loop().create_future()
        # An empty context: otherwise this caller's request id would appear in the logs of all.
        task = asyncio.create_task(self._look_up(host, port, family), context=Context())
        lookup = _Lookup(self._now(), answer, task)
        # Not by the task itself: if cancelled before its first step, it would not run.
        task.add_done_callback(partial(self._finish, (host, int(family)), lookup))
        return lookup

    def _finish(self, key: tuple[str, int], lookup: _Lookup, task: "asyncio.Task[Found]") -> None:
        del self._under_way[key]
        error = _no_answer(key[0]) if task.cancelled() else task.exception()
        if error is None:
            lookup.answer.set_result(task.result())
        else:
            lookup.answer.set_exception(error)
            # The caller may have been cancelled, in which case nobody retrieves the exception.
            lookup.answer.exception()

    async def _look_up(self, host: str, port: int, family: socket.AddressFamily) -> Found:
        domain = domain_of(host)
        async with AsyncExitStack() as places:
            # By then all callers have been cancelled, and nobody would retrieve the result.
            async with asyncio.timeout(self._patience_s):
                of_domain = self._domains.setdefault(domain, asyncio.Semaphore(MOST_OF_DOMAIN))
                await places.enter_async_context(of_domain)
                await places.enter_async_context(self._places[self._classify(host, domain)])
            return await self._watched(host, domain, port, family)

    def _classify(self, host: str, domain: str) -> HostClass:
        if domain in self._slow_domains:
            return HostClass.SLOW
        return HostClass.KNOWN if host in self._known else HostClass.NEW

    async def _watched(
        self, host: str, domain: str, port: int, family: socket.AddressFamily
    ) -> Found:
        """The resolver's result; records how quick it was."""
        loop, began_s = asyncio.get_running_loop(), self._now()
        # Now and not when it ends: the domain's other names must not take new names' slots meanwhile.
        slow = loop.call_later(self._quick_s, self._record_slow, host, domain)
        try:
            found = await self._in_thread(host, port, family)
        except OSError:
            if self._now() - began_s >= self._quick_s:
                self._given_up.add(host)
            raise
        finally:
            slow.cancel()
        if self._now() - began_s < self._quick_s:
            self._known.add(host)
        return found

    def _record_slow(self, host: str, domain: str) -> None:
        self._known.discard(host)
        self._slow_domains.add(domain)

    async def _in_thread(self, host: str, port: int, family: socket.AddressFamily) -> Found:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()

        def look_up() -> None:
            found: Found | Exception
            try:
                found = (self._query or query_system)(host, port, family)
            except UnicodeError:
                found = OSError(f"{host} is no name of a host")
            except Exception as error:  # noqa: BLE001 - edge of the thread: re-raised in the waiting caller
                found = error
            # The loop may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_set_result, answer, found)

        try:
            # A daemon thread, so that a slow name server does not delay the process's end.
            Thread(target=look_up, name="name lookup", daemon=True).start()
        except RuntimeError as error:
            # No thread can be started now; the next lookup may succeed.
            raise _no_answer(host) from error
        return await answer


def _set_result(answer: "asyncio.Future[Found]", found: Found | Exception) -> None:
    if answer.done():
        return  # every waiting caller was cancelled
    if isinstance(found, Exception):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def domain_of(host: str) -> str:
    """Approximates the registered domain: `shop.example` for `a.b.shop.example`, `shop.co.uk` for
    `a.shop.co.uk`."""
    labels = host.rstrip(".").lower().split(".")
    is_registry = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in REGISTRIES
    return ".".join(labels[-3 if is_registry else -2 :])


def _no_answer(host: str) -> OSError:
    return socket.gaierror(socket.EAI_AGAIN, f"no name server has told of {host} in time")
