"""Runs a step of the tour and prints its result."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from rich.console import Console

from msgsvc_devkit.deadlines import patient

#: Seconds that a step may wait for something to appear.
PATIENCE_S = patient(60.0)

T = TypeVar("T")


class StepFailed(Exception):
    """A step of the tour failed. The text gives the expected and the actual value."""


class Stage:
    """Prints one line per step, with its duration."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.steps = 0

    @asynccontextmanager
    async def step(self, title: str) -> AsyncIterator[None]:
        """Runs the block as one step. Raises `StepFailed`, with the step's title, if it fails."""
        started = time.perf_counter()
        try:
            yield
        except Exception as error:
            self._console.print(f"  [red]✗[/red] {title}", soft_wrap=True)
            reason = error if isinstance(error, StepFailed) else repr(error)
            raise StepFailed(f"at {title!r}: {reason}") from error
        self.steps += 1
        seconds = time.perf_counter() - started
        self._console.print(f"  [green]✓[/green] {seconds:5.2f} s  {title}", soft_wrap=True)


def expect(found: object, wanted: object, what: str) -> None:
    """Raises `StepFailed` unless both are equal."""
    if found != wanted:
        raise StepFailed(f"{what}: expected {wanted!r}, found {found!r}")


async def appears(what: str, look: Callable[[], Awaitable[T | None]]) -> T:
    """Polls `look` until it returns a value. Raises `StepFailed` after `PATIENCE_S`."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while (found := await look()) is None:
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise StepFailed(f"{what}: nothing within {PATIENCE_S:g} s") from None
    return found
