"""The hourly job that brings long-lived encrypted values under the current secret key."""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Stopping
from msgsvc_core.security.rotation import KeyRotation
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import SecretBox

NAME = "core.reseal"

#: What did the same for contacts alone.
REPLACED = "core.reseal_contacts"


#: The live processes that do not know a secret key, by its id.
RunnersWithoutKey = Callable[[Tx, str], Awaitable[list[str]]]

log = structlog.get_logger(__name__)


class Resealing:
    """Does by itself what `msgsvc secrets rotate` does at once, but for values that expire within days."""

    def __init__(
        self,
        *,
        secrets: SecretBox,
        columns: Sequence[SealedColumn],
        runners_without_key: RunnersWithoutKey,
    ) -> None:
        self._secrets = secrets
        self._runners_without_key = runners_without_key
        self._columns = [column for column in columns if column.is_lasting]

    @property
    def spec(self) -> JobSpec:
        return JobSpec(NAME, self.reseal, every_s=3600, replaces=(REPLACED,))

    async def reseal(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Raises `Stopping` when the runner shuts down: the next run goes on from there. Does nothing while a
        process runs that could not read what it writes."""
        key_id = self._secrets.key_ids[0]
        async with ctx.reading() as tx:
            lacking = await self._runners_without_key(tx, key_id)
        if lacking:
            log.warning("secret_key_not_everywhere", key_id=key_id, processes=lacking)
            return

        def on_step(_column: SealedColumn, _count: int) -> None:
            if ctx.stopping:
                raise Stopping

        rotation = KeyRotation(
            secrets=self._secrets,
            columns=self._columns,
            read=ctx.reading,
            transaction=ctx.transaction,
        )
        await rotation.run(on_step)
