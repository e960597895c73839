"""How long rows of a table are kept: declared by the package that owns the table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows of a table that are removed `retention_ms` milliseconds after the time in `column`."""

    table: str
    column: str
    retention_ms: int = 0
