"""What the bench found: a table for people, and `bench.json` for what compares runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure must reach, or stay under."""

    least: float | None = None
    most: float | None = None

    @property
    def number(self) -> float | None:
        return self.most if self.least is None else self.least

    def holds(self, figure: float) -> bool:
        return (self.least is None or figure >= self.least) and (
            self.most is None or figure <= self.most
        )

    def __str__(self) -> str:
        if self.number is None:
            return ""
        if self.least is not None and self.most is not None:
            return f"{self.least:g}-{self.most:g}"
        return f"{'≥' if self.most is None else '≤'} {self.number:g}"


#: For a figure that nothing is asked of.
NONE = Bound()


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure, and the one of the same run that it is compared with, if there is one.

    `value` is None where it could not be measured, and so is `reference`. `bound` holds for the
    ratio, or for the value of what is `alone`: compared with nothing.
    """

    name: str
    value: float | None
    reference: float | None = None
    bound: Bound = NONE
    alone: bool = False

    @property
    def ratio(self) -> float | None:
        return None if self.value is None or not self.reference else self.value / self.reference

    @property
    def met(self) -> bool | None:
        """None where nothing is asked, or where nothing was measured."""
        figure = self.value if self.alone else self.ratio
        return None if figure is None or self.bound == NONE else self.bound.holds(figure)


def write(path: Path, found: Sequence[Finding]) -> None:
    """The findings as JSON; what stood there is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [
        {
            "name": finding.name,
            "value": _rounded(finding.value),
            "reference": _rounded(finding.reference),
            "ratio": _rounded(finding.ratio),
            "target": finding.bound.number,
            "met": finding.met,
        }
        for finding in found
    ]
    path.write_text(json.dumps(written, indent=2) + "\n")


def table(found: Sequence[Finding], title: str) -> Table:
    """The findings with what they are measured by; what is not met stands out."""
    made = Table(title=title, title_justify="left", header_style="bold")
    made.add_column("figure")
    for column in ("value", "reference", "ratio", "target"):
        made.add_column(column, justify="right", no_wrap=True)
    made.add_column("met")
    for finding in found:
        made.add_row(
            finding.name,
            _shown(finding.value),
            _shown(finding.reference),
            "" if finding.ratio is None else f"{finding.ratio:.3g}",
            str(finding.bound),
            _verdict(finding),
        )
    return made


def _verdict(finding: Finding) -> str:
    if finding.bound == NONE:
        return ""
    return {True: "[green]yes[/]", False: "[bold red]no[/]", None: "[yellow]not measured[/]"}[
        finding.met
    ]


def _shown(figure: float | None) -> str:
    return "" if figure is None else f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}"


def _rounded(figure: float | None) -> float | None:
    return None if figure is None else round(figure, 4)
