"""Tells when the event loop was kept from doing anything else: by what, and for how long.

While it is, nobody is answered, no bot is polled and no lease is extended. A beat on the loop measures the
gap; a thread sees that one is due and takes down what the loop is doing.
"""

import asyncio
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import FrameType

import structlog
from prometheus_client import CollectorRegistry, Histogram

#: Seconds that the loop may be kept without being told.
MOST_S = 0.2

#: Seconds between two beats of the loop, and between two looks of the thread.
BEAT_S, LOOK_S = 0.05, 0.05

#: Frames of the stack that are logged, the innermost of them.
FRAMES = 12

#: Bucket bounds in seconds.
BLOCKS_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)

log = structlog.get_logger(__name__)


@asynccontextmanager
async def watched_loop(registry: CollectorRegistry, most_s: float = MOST_S) -> AsyncIterator[None]:
    """Logs and counts what keeps the running loop for more than `most_s` seconds, during the block."""
    watchdog = _LoopWatchdog(registry, most_s)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()


class _LoopWatchdog:
    def __init__(self, registry: CollectorRegistry, most_s: float) -> None:
        self._most_s = most_s
        self._blocks = Histogram(
            "msgsvc_loop_blocked_seconds",
            "How long the event loop did nothing else, where that was over 0.2 s: nobody was answered.",
            buckets=BLOCKS_S,
            registry=registry,
        )
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat_at = time.monotonic()
        #: What the loop was doing when a beat was missing.
        self._stack: str | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="loop watchdog", daemon=True)

    def start(self) -> None:
        self._timer = self._loop.call_later(BEAT_S, self._beat)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._timer is not None:
            self._timer.cancel()
        self._thread.join()

    def _beat(self) -> None:
        now = time.monotonic()
        blocked_s, stack = now - self._beat_at - BEAT_S, self._stack
        self._beat_at, self._stack = now, None
        if blocked_s > self._most_s:
            self._blocks.observe(blocked_s)
            log.warning("loop_blocked", seconds=round(blocked_s, 3), stack=stack)
        self._timer = self._loop.call_later(BEAT_S, self._beat)

    def _look(self) -> None:
        while not self._stopped.wait(LOOK_S):
            is_late = time.monotonic() - self._beat_at - BEAT_S > self._most_s / 2
            if is_late and self._stack is None:
                frame = sys._current_frames().get(self._loop_thread)
                self._stack = "" if frame is None else _written(frame)


def _written(frame: FrameType) -> str:
    """The stack in one line, innermost call first, without values."""
    frames = traceback.extract_stack(frame)[-FRAMES:]
    return " < ".join(
        f"{each.name} ({'/'.join(each.filename.split('/')[-2:])}:{each.lineno})"
        for each in reversed(frames)
    )
