"""Runs a fake platform manually, with commands from standard input, until Ctrl-C."""

import argparse
import asyncio
import errno
import json
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import suppress
from typing import Any


def run_by_hand(
    serving: Coroutine[Any, Any, None], parser: argparse.ArgumentParser, port: int
) -> None:
    """Serves until Ctrl-C; prints one line if the port is in use."""
    try:
        asyncio.run(serving)
    except KeyboardInterrupt:
        pass
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        parser.exit(1, f"port {port} is in use; name another: --port\n")


async def typed_lines() -> AsyncIterator[str]:
    """The lines of standard input, without line ends.

    Ctrl-C ends a program that waits here at once. asyncio would wait for a thread of its own pool until Enter
    is pressed.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()
    number, encoding = sys.stdin.fileno(), sys.stdin.encoding

    def read() -> None:
        # A separate file object: the interpreter can't exit cleanly while a thread reads `sys.stdin`.
        with (
            suppress(RuntimeError),  # the loop has ended meanwhile
            open(number, encoding=encoding, errors="replace", closefd=False) as typed,
        ):
            for line in typed:
                loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, name="keyboard", daemon=True).start()
    while line := await lines.get():
        yield line.strip()


def section_of(settings: Mapping[str, Any], name: str = "channels.messenger_a") -> str:
    """A section of `msgsvc.toml` with these settings; a mapping among them is a section of its own."""
    inner = {key: value for key, value in settings.items() if isinstance(value, Mapping)}
    # Texts, numbers and booleans are written in TOML as in JSON.
    lines = [f"{key} = {json.dumps(settings[key])}" for key in settings if key not in inner]
    sections = [section_of(value, f"{name}.{key}") for key, value in inner.items()]
    return "\n".join([f"[{name}]", *lines, "", *sections])
