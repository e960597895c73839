"""Exports under way: how many there are at a time, and how much of the process they take.

A chunk of an export is read and written in the event loop that answers every project's requests. So each
process works on one chunk at a time, and rests for as long as that took before the next one.
"""

import asyncio
import time
import weakref
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from msgsvc_core.kernel.errors import RateLimitProject

#: `Retry-After` of an export that is one too many, in seconds: 10,000 subscribers take about as long.
RETRY_AFTER_S = 10

#: Maximum seconds of rest after a chunk, for one that waited long for the database.
MAX_REST_S = 0.25


class Exports:
    """The exports of one process. At most `per_project` of a project and `per_process` altogether."""

    def __init__(self, *, per_project: int, per_process: int) -> None:
        self._per_project = per_project
        self._per_process = per_process
        self._open: Counter[str] = Counter()
        self._turn = asyncio.Lock()

    def start(self, project_id: str, pieces: AsyncIterator[bytes]) -> "ExportStream":
        """The pieces of an export, paced. It counts until it has been read, or is closed.

        Raises `RateLimitProject` for one too many.
        """
        return ExportStream(pieces, self._turn, self._take(project_id))

    @contextmanager
    def slot(self, project_id: str) -> Iterator[None]:
        """Counts an export whose answer is no stream while the block runs. Raises `RateLimitProject`."""
        release = self._take(project_id)
        try:
            yield
        finally:
            release()

    def _take(self, project_id: str) -> Callable[[], None]:
        if self._open[project_id] >= self._per_project:
            raise RateLimitProject(
                "{count} exports of this project are under way; wait until one of them has ended",
                count=self._per_project,
                retry_after_s=RETRY_AFTER_S,
            )
        if self._open.total() >= self._per_process:
            raise RateLimitProject(
                "too many exports are under way; try again later", retry_after_s=RETRY_AFTER_S
            )
        self._open[project_id] += 1

        def release() -> None:
            self._open[project_id] -= 1
            if not self._open[project_id]:
                del self._open[project_id]

        return release


class ExportStream:
    """The pieces of an export: see `Exports.start`."""

    def __init__(
        self, pieces: AsyncIterator[bytes], turn: asyncio.Lock, release: Callable[[], None]
    ) -> None:
        self._pieces = pieces
        self._turn = turn
        #: Pieces that were computed ahead.
        self._ahead: list[bytes] = []
        # Once, also if nobody ever reads the stream.
        self._close = weakref.finalize(self, release)

    def __aiter__(self) -> "ExportStream":
        return self

    async def __anext__(self) -> bytes:
        if self._ahead:
            return self._ahead.pop()
        try:
            async with self._turn:
                began_s = time.perf_counter()
                piece = await anext(self._pieces)
                # With the turn: the others rest too.
                await asyncio.sleep(min(time.perf_counter() - began_s, MAX_REST_S))
            return piece
        except BaseException:
            self.close()
            raise

    def put_back(self, piece: bytes) -> None:
        """Has a piece be the next one again."""
        self._ahead.append(piece)

    def close(self) -> None:
        """Ends the export; another one may start."""
        self._close()


class ExportResponse(StreamingResponse):
    """Streams an export. It ends with the response, also for a client that leaves."""

    def __init__(self, stream: ExportStream, **options: Any) -> None:
        super().__init__(stream, **options)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._stream.close()
