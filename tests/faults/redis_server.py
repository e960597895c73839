"""A Redis of a test's own, to be emptied and killed."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.process import PATIENCE_S


@contextmanager
def running_redis(port: int, folder: Path) -> Iterator[None]:
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            yield
        finally:
            process.kill()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < deadline, "redis-server does not listen"
            time.sleep(0.02)
        else:
            return
