"""Last use of API keys: recorded in memory per request, written once a minute."""

import asyncio

import structlog

from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.projects import store
from msgsvc_core.projects.models import ApiKey

#: Seconds between two writes: recording costs a request nothing, and a write is one statement.
WRITE_EVERY_S = 60.0

log = structlog.get_logger(__name__)


class KeyUses:
    """Uses of keys in this process that are not written yet."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        #: Unix milliseconds of the last use, by project and key.
        self._recorded: dict[tuple[str, str], int] = {}
        self._task: asyncio.Task[None] | None = None

    def record(self, key: ApiKey) -> None:
        """Records a use of the key."""
        self._recorded[key.project_id, key.key_id] = self._clock.now_ms()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._write_periodically(), name="key uses")

    async def stop(self) -> None:
        """Writes the remaining uses."""
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None
        await self.write()

    async def write(self) -> None:
        """Writes the uses recorded since the last time; if the database is unavailable, next time."""
        noted, self._recorded = self._recorded, {}
        if not noted:
            return
        try:
            async with self._db.transaction() as tx:
                await store.set_last_used(tx, noted)
        except DatabaseUnavailable as error:
            self._recorded = {**noted, **self._recorded}
            log.warning("key_uses_not_written", error=str(error))

    async def _write_periodically(self) -> None:
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            try:
                await self.write()
            except Exception:
                # The edge: a minute's uses are lost, and the next minute's are written.
                log.exception("key_uses_not_written")
