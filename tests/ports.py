"""Ports that stay free for who will listen on them in a while."""

import random
import socket
from contextlib import ExitStack

#: Below those that the system gives to connections and to whoever asks for any port, by default.
LOWEST, HIGHEST = 15_000, 32_000


def free_ports(count: int = 1) -> int:
    """The first of so many ports of 127.0.0.1, one behind the other, on which nobody listens."""
    while True:
        first = random.randrange(LOWEST, HIGHEST - count)
        try:
            with ExitStack() as bound:
                for port in range(first, first + count):
                    bound.enter_context(socket.create_server(("127.0.0.1", port)))
        except OSError:
            continue
        return first
