"""Runs a fake platform manually, with commands from standard input, until Ctrl-C."""

import argparse
import asyncio
import errno
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

#: What a word does, with the rest of its line.
Command = Callable[[str], Awaitable[object] | None]


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


async def converse(
    commands: Mapping[str, Command], watching: Coroutine[Any, Any, None], help_text: str
) -> None:
    """Runs the command that the first word of each typed line names, while `watching` shows what happens;
    ends with `quit` or the input.

    The command `""` takes the lines that no other begins. What a command raises as wrong is shown.
    """
    shows = asyncio.create_task(watching)
    try:
        async for line in typed_lines():
            word, _, rest = line.partition(" ")
            if word == "quit":
                break
            if word in commands:
                await _run(commands[word], rest)
            elif "" in commands:
                await _run(commands[""], line)
            else:
                show(help_text)
    finally:
        shows.cancel()


async def _run(command: Command, rest: str) -> None:
    try:
        doing = command(rest)
        if doing is not None:
            await doing
    except (LookupError, ValueError, TimeoutError) as error:
        show(f"! {error}\n")


def show(text: str) -> None:
    """Writes to the screen at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


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
