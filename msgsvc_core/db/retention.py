"""Retention of rows, declared by the package that owns the table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Rows of a table are deleted `retention_ms` milliseconds after the time in `column`."""

    table: str
    column: str
    retention_ms: int = 0
