"""What a person types at a fake platform that is run by hand."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress


async def typed_lines() -> AsyncIterator[str]:
    """The lines of standard input, without their ends, until there are no more.

    Ctrl-C ends a program that waits here at once. A thread of asyncio's own would be waited for, until
    somebody presses Enter.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str] = asyncio.Queue()
    number, encoding = sys.stdin.fileno(), sys.stdin.encoding

    def read() -> None:
        # A file of its own: the interpreter can't end in peace while a thread reads `sys.stdin`.
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
