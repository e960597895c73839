"""The SQL of a campaign's counts: each number by an index, counted up to a limit."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.values import value_object
from msgsvc_drip.models import Drip

_OF_CHAIN = "project_id = :project_id AND drip_id = :drip_id"
_ENDED = ("completed", "stopped", "cancelled")


@value_object
class Counts:
    """Enrollments by state; a number equal to `most` means at least that many.

    `waiting` has those waiting for each step of the newest version, `earlier` those in older versions.
    """

    waiting: list[int]
    earlier: int
    completed: int
    stopped: int
    cancelled: int
    most: int

    @property
    def inside(self) -> int:
        return sum(self.waiting) + self.earlier

    @property
    def is_bounded(self) -> bool:
        """Whether `inside` may be more than it says."""
        return self.most in {*self.waiting, self.earlier}


async def count(tx: Tx, drip: Drip, limit: int) -> Counts:
    """Counts each up to `limit`."""
    steps = len(drip.definition.steps)
    open_ones = "finished_at_ms IS NULL AND version"
    conditions = [
        *(f"{open_ones} = :version AND next_step = {step}" for step in range(steps)),
        f"{open_ones} < :version",
        *(f"status = '{status}'" for status in _ENDED),
    ]
    rows = await tx.fetch_all(
        " UNION ALL ".join(
            f"SELECT {place} AS place, COUNT(*) AS count FROM (SELECT 1 FROM drip_enrollments"
            f" WHERE {_OF_CHAIN} AND {condition} LIMIT :most) AS these"
            for place, condition in enumerate(conditions)
        ),
        {
            "project_id": drip.project_id,
            "drip_id": drip.drip_id,
            "version": drip.version,
            "most": limit,
        },
    )
    found = [row["count"] for row in sorted(rows, key=lambda row: row["place"])]
    earlier, completed, stopped, cancelled = found[steps:]
    return Counts(found[:steps], earlier, completed, stopped, cancelled, limit)
