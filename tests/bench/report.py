"""What the bench found: a table for people, and `bench.json` for what compares runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.table import Table

from tests.bench.load import Load


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure beside the one it is compared with. `target` is a bound for `ratio`, once set."""

    name: str
    value: float
    reference: float
    ratio: float
    target: float | None = None
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """The medians of a server's rounds."""

    per_s: float
    p50_ms: float
    p99_ms: float

    @classmethod
    def of(cls, rounds: Sequence[Load]) -> "Figures":
        return cls(
            per_s=median(load.per_s for load in rounds),
            p50_ms=median(load.p50_ms for load in rounds),
            p99_ms=median(load.p99_ms for load in rounds),
        )


def findings(figures: Mapping[str, Figures], reference: str) -> list[Finding]:
    """Requests per second and p99 of every server against those of `reference`."""
    base = figures[reference]
    found: list[Finding] = []
    for name, own in figures.items():
        if name == reference:
            continue
        for what in ("per_s", "p99_ms"):
            value, beside = getattr(own, what), getattr(base, what)
            found.append(
                Finding(
                    f"send, {name}: {what}",
                    round(value, 2),
                    round(beside, 2),
                    round(value / beside, 4),
                )
            )
    return found


def write(path: Path, found: Sequence[Finding]) -> None:
    """The findings as JSON; what stood there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(finding) for finding in found], indent=2) + "\n")


def table(figures: Mapping[str, Figures], reference: str, title: str) -> Table:
    """The figures, each server's beside what it is of the reference's."""
    base = figures[reference]
    made = Table(title=title, title_justify="left", header_style="bold")
    made.add_column("POST /v1/send", no_wrap=True)
    for column in ("per s", "of echo", "p50 ms", "p99 ms", "of echo"):
        made.add_column(column, justify="right")
    for name, own in figures.items():
        made.add_row(
            name,
            f"{own.per_s:,.0f}",
            f"{own.per_s / base.per_s:.1%}",
            f"{own.p50_ms:.1f}",
            f"{own.p99_ms:.1f}",
            f"{own.p99_ms / base.p99_ms:.1f} x",
        )
    return made
