"""The form of a route: its steps as rows, which work without scripts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.values import whole_number
from msgsvc_core.routing.models import Route, RouteStep

#: What a row has, as texts: those of `RouteStep`, with the hours apart.
Row = dict[str, str]

EMPTY: Mapping[str, str] = {
    "channel": "",
    "until": "sent",
    "within_seconds": "",
    "from": "",
    "to": "",
    "timezone": "",
    "on_unknown": "",
}


@dataclass(frozen=True, slots=True)
class RouteForm:
    """What is written in the form. `version` is that of the route that was opened."""

    name: str = ""
    version: str = ""
    rows: list[Row] = field(default_factory=lambda: [dict(EMPTY), dict(EMPTY)])

    @classmethod
    def of(cls, route: Route) -> "RouteForm":
        return cls(route.name, str(route.version), [_row(step) for step in route.steps])

    @classmethod
    def posted(cls, form: PostedForm, most: int) -> "RouteForm":
        """The rows of a form, up to `most`."""
        count = min(whole_number(form.text("steps")) or 0, most)
        rows = [
            {name: form.text(f"s{number}_{name}").strip() for name in EMPTY}
            for number in range(count)
        ]
        return cls(form.text("name"), form.text("version"), rows)

    def step(self, action: str, most: int) -> None:
        """Does what a button says: `add`, or `up`, `down` and `remove` with the number of a row."""
        what, _, number = action.partition("-")
        if what == "add" and len(self.rows) < most:
            self.rows.append(dict(EMPTY))
        at = whole_number(number)
        if at is None or at >= len(self.rows):
            return
        if what == "remove":
            del self.rows[at]
        other = {"up": at - 1, "down": at + 1}.get(what, at)
        if 0 <= other < len(self.rows) and what != "remove":
            self.rows[at], self.rows[other] = self.rows[other], self.rows[at]

    def without_empty(self) -> "RouteForm":
        """Without the rows in which no channel is chosen."""
        return RouteForm(self.name, self.version, [row for row in self.rows if row["channel"]])

    def to_body(self) -> dict[str, Any]:
        """The fields of `CreateRouteBody`, to be validated."""
        return {"name": self.name.strip(), "steps": list(_steps(self.rows))}


def _steps(rows: Iterable[Row]) -> Iterable[dict[str, Any]]:
    for row in rows:
        within, has_hours = row["within_seconds"], row["from"] or row["to"]
        number = whole_number(within)
        yield {
            "channel": row["channel"],
            "until": row["until"] or "sent",
            # A text that is no number is for `validate` to reject.
            "within_seconds": (within if number is None else number) if within else None,
            "hours": {
                "from": row["from"],
                # The end of the day, which a browser's field has no time for: see `_row`.
                "to": "24:00" if row["to"] == "00:00" else row["to"],
                **({"timezone": row["timezone"]} if row["timezone"] else {}),
            }
            if has_hours
            else None,
            "on_unknown": row["on_unknown"] or "stop",
        }


def _row(step: RouteStep) -> Row:
    hours = step.hours
    return {
        "channel": step.channel,
        "until": step.until,
        "within_seconds": "" if step.within_seconds is None else str(step.within_seconds),
        "from": "" if hours is None else hours.from_,
        # A time field of a browser has no 24:00; until midnight is the same.
        "to": "" if hours is None else hours.to.replace("24:00", "00:00"),
        "timezone": "" if hours is None else hours.timezone,
        "on_unknown": "continue" if step.on_unknown == "continue" else "",
    }
