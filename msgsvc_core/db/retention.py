"""Retention of rows, declared by the package that owns the table."""

from dataclasses import dataclass

from msgsvc_core.kernel.clock import DAY_MS

#: Partitions that a table's retention is divided into, roughly: as much as that is kept too long.
PARTITIONS = 8


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """A table that may be partitioned on PostgreSQL, by its `column` with ids that begin with `prefix`.

    Partitions are dropped after `days`; 0 keeps them all. `kept_by` is a query for rows because of which a
    partition stays, of the table `{partition}`, or of another one, whose rows are made before `{end_ms}`.
    """

    table: str
    column: str
    prefix: str
    days: int
    kept_by: str | None = None

    @property
    def period_ms(self) -> int:
        """Milliseconds that a partition covers: whole days; 0 if nothing is to be dropped."""
        return max(1, self.days // PARTITIONS) * DAY_MS if self.days else 0


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows of a table are deleted `retention_ms` milliseconds after the time in `column`. A table with
    `partitions` is emptied by dropping them, once it has some."""

    table: str
    column: str
    retention_ms: int = 0
    partitions: PartitionRule | None = None
