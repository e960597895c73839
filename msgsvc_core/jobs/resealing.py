"""The hourly job that brings long-lived encrypted values under the current secret key."""

from collections.abc import Sequence

from msgsvc_core.jobs.contract import Job, JobContext, JobSpec, Stopping
from msgsvc_core.security.rotation import KeyRotation
from msgsvc_core.security.sealed import SealedColumn
from msgsvc_core.security.secret_box import SecretBox

NAME = "core.reseal"

#: What did the same for contacts alone.
REPLACED = "core.reseal_contacts"


class Resealing:
    """Does by itself what `msgsvc secrets rotate` does at once, but for values that expire within days."""

    def __init__(self, *, secrets: SecretBox, columns: Sequence[SealedColumn]) -> None:
        self._secrets = secrets
        self._columns = [column for column in columns if column.is_lasting]

    @property
    def spec(self) -> JobSpec:
        return JobSpec(NAME, self.reseal, every_s=3600, replaces=(REPLACED,))

    async def reseal(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Raises `Stopping` when the runner shuts down: the next run goes on from there."""

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
