"""Turns what handlers answer into HTML."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from msgsvc_core.clock import to_rfc3339
from msgsvc_core.dashboard import PageContext, Pages, Shown

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parents[1] / "templates"


class Renderer:
    """Templates of the frame by their name, those of areas after the area's: `helpdesk/tickets.html`."""

    def __init__(self, areas: Sequence[Pages]) -> None:
        self._areas = areas

    @cached_property
    def _environment(self) -> "Environment":
        # 2 MiB that a process may do without which nobody asks for pages.
        from jinja2 import (  # noqa: PLC0415 - loaded with the first page
            ChoiceLoader,
            Environment,
            FileSystemLoader,
            PackageLoader,
            PrefixLoader,
            StrictUndefined,
        )

        areas = PrefixLoader({each.area: PackageLoader(each.package) for each in self._areas})
        made = Environment(
            loader=ChoiceLoader([FileSystemLoader(TEMPLATES), areas]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters["moment"] = moment
        made.filters["rfc3339"] = to_rfc3339
        return made

    def render(self, area: str, shown: Shown, values: Mapping[str, Any]) -> str:
        """`values` are what every page has; those of the handler win over none of them."""
        template = self._environment.get_template(f"{area}/{shown.template}")
        return template.render({**shown.values, **values})

    def render_frame(self, template: str, values: Mapping[str, Any]) -> str:
        """A page of the frame itself."""
        return self._environment.get_template(template).render(values)


def moment(at_ms: int, page: PageContext) -> str:
    """A time as its reader's clock shows it: `{{ at_ms | moment(page) }}`."""
    zone: ZoneInfo = page.timezone
    return datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")
