"""Listens to NOTIFY on a dedicated connection."""

import asyncio
from contextlib import suppress
from contextvars import Context
from typing import Any

import asyncpg
import structlog

from msgsvc_core.db.notifications import CHANNEL, Notifications
from msgsvc_core.db.postgres_urls import connect_arguments
from msgsvc_core.kernel.aio import cancel_and_wait

#: Seconds before reconnecting a lost connection.
RETRY_S = 1.0

#: Seconds between checks of the connection: it may be lost without an error.
CHECK_S = 30.0

#: Timeout in seconds for connecting, LISTEN, checks and closing.
PATIENCE_S = 5.0

log = structlog.get_logger(__name__)


class PostgresListener:
    """Passes notifications to `notices` between `start` and `stop`.

    Notifications sent while the connection is down are lost.
    """

    def __init__(self, url: str, notices: Notifications, *, session: str) -> None:
        self._url = url
        self._session = session
        self._notices = notices
        self._task: asyncio.Task[None] | None = None
        #: Set while it is listening.
        self.open = asyncio.Event()

    def start(self) -> None:
        if self._task is None:
            # Not the caller's context: its request id would appear in all logs.
            self._task = asyncio.get_running_loop().create_task(self._run(), context=Context())

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            await cancel_and_wait(task)

    async def _run(self) -> None:
        while True:
            try:
                await self._receive()
            except Exception as error:  # noqa: BLE001 - reconnects after any error of the connection
                log.warning("notices_not_heard", error=str(error) or type(error).__name__)
            finally:
                self.open.clear()
            await asyncio.sleep(RETRY_S)

    async def _receive(self) -> None:
        """Listens until the connection is lost. Raises the driver's exceptions."""
        raw = await asyncpg.connect(
            **connect_arguments(self._url),
            timeout=PATIENCE_S,
            command_timeout=PATIENCE_S,
            server_settings={"application_name": self._session},
        )
        try:
            await self._listen(raw)
        finally:
            with suppress(OSError, TimeoutError):
                await raw.close(timeout=PATIENCE_S)

    async def _listen(self, raw: Any) -> None:
        lost = asyncio.Event()
        raw.add_termination_listener(lambda _connection: lost.set())
        await raw.add_listener(CHANNEL, self._on_notification)
        self.open.set()
        while not lost.is_set():
            try:
                async with asyncio.timeout(CHECK_S):
                    await lost.wait()
            except TimeoutError:
                await raw.execute("SELECT 1", timeout=PATIENCE_S)
        log.warning("notices_not_heard", error="the connection was lost")

    def _on_notification(
        self, _connection: Any, _process_id: int, _channel: str, notice: str
    ) -> None:
        self._notices.notify(notice)
