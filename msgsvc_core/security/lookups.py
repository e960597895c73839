"""Names of hosts that tenants gave, looked up apart from everything else.

The system's resolver blocks a thread for as long as a name server takes, and no timeout gives that
thread back. In the event loop's few threads, a handful of names that answer slowly would keep everybody
else from new connections.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any

#: Lookups that are under way at once; each has a thread of its own, which mostly waits.
MOST = 64

#: Of them those of one domain: who has it can answer for all of its names as slowly as they like.
MOST_OF_DOMAIN = 4

#: Address families and addresses, as `socket.getaddrinfo` has them.
Found = Sequence[tuple[Any, ...]]

#: Asks the system's resolver, and blocks meanwhile. Raises `OSError`.
Ask = Callable[[str, int, socket.AddressFamily], Found]


def ask_system(host: str, port: int, family: socket.AddressFamily) -> Found:
    return socket.getaddrinfo(
        host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )


class Lookups:
    """Looks up names for one event loop, by `ask` or else `ask_system`."""

    def __init__(self, ask: Ask | None = None) -> None:
        self._ask = ask
        self._under_way: dict[tuple[str, int, int], asyncio.Future[Found]] = {}
        self._of_domain: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def find(self, host: str, port: int, family: socket.AddressFamily) -> Found:
        """What the system's resolver says. Raises `OSError`, at once where too many others are slow.

        Who asks for a name that is being looked up waits for the same answer; who asks for one more of a
        domain of which `MOST_OF_DOMAIN` are slow waits for one of these.
        """
        key, domain = (host, port, int(family)), _domain(host)
        while key not in self._under_way:
            if len(self._under_way) >= MOST:
                raise OSError("too many names of hosts are being looked up")
            if self._of_domain[domain] < MOST_OF_DOMAIN:
                self._begin(key, domain, family)
            else:
                self._ended.clear()
                await self._ended.wait()
        return await asyncio.shield(self._under_way[key])

    def _begin(self, key: tuple[str, int, int], domain: str, family: socket.AddressFamily) -> None:
        loop = asyncio.get_running_loop()
        self._under_way[key] = loop.create_future()
        self._of_domain[domain] += 1
        # A daemon: nobody waits for a slow name server when the process ends.
        work = partial(self._look_up, loop, key, domain, family)
        Thread(target=work, name=f"look up {key[0]}", daemon=True).start()

    def _look_up(
        self,
        loop: asyncio.AbstractEventLoop,
        key: tuple[str, int, int],
        domain: str,
        family: socket.AddressFamily,
    ) -> None:
        """In a thread of its own."""
        found: Found | OSError
        try:
            found = (self._ask or ask_system)(key[0], key[1], family)
        except OSError as error:
            found = error
        except UnicodeError:
            found = OSError(f"{key[0]} is no name of a host")
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._settle, key, domain, found)

    def _settle(self, key: tuple[str, int, int], domain: str, found: Found | OSError) -> None:
        waiting = self._under_way.pop(key)
        self._of_domain[domain] -= 1
        if not self._of_domain[domain]:
            del self._of_domain[domain]
        self._ended.set()
        if isinstance(found, OSError):
            waiting.set_exception(found)
            # Whoever asked may have gone: then nobody else looks at it.
            waiting.exception()
        else:
            waiting.set_result(found)


def _domain(host: str) -> str:
    """The last two labels of a name: near enough to who answers for it."""
    return ".".join(host.rstrip(".").lower().split(".")[-2:])
