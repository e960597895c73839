"""Renders templates to HTML."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgsvc_core.dashboard import Pages, Render
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import own_name
from msgsvc_core.pages import icon
from msgsvc_dashboard.frame import formats, marks, refusals
from msgsvc_dashboard.frame.chat_looks import chat_class

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context
    from markupsafe import Markup

#: What every page has, whatever its area.
FRAME = ("page", "_", "lang", "static", "csrf", "frame")

TEMPLATES = Path(__file__).parents[1] / "templates"


class Renderer:
    """Templates of the frame by name, those of areas with the area's prefix: `helpdesk/tickets.html`."""

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
            StrictUndefined,
            pass_context,
        )

        from msgsvc_dashboard.frame.template_texts import (  # noqa: PLC0415 - comes with jinja2
            COMPILED,
            AreaLoader,
            OwnTexts,
        )

        areas = AreaLoader({each.area: PackageLoader(each.package) for each in self._areas})
        made = Environment(
            loader=ChoiceLoader([FileSystemLoader(TEMPLATES), areas]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[OwnTexts],
            bytecode_cache=COMPILED,
        )
        made.extend(text_modules={each.area: each.package for each in self._areas})
        made.globals["fragment"] = pass_context(partial(_fragment, self))
        made.globals["faults"] = pass_context(refusals.faults)
        made.globals["drawn_icon"] = icon
        made.globals["timezones"] = formats.timezones
        made.filters["rfc3339"] = to_rfc3339
        made.filters["moment"] = pass_context(formats.moment)
        made.filters["moment_in"] = pass_context(formats.moment_in)
        made.filters["in_full"] = pass_context(formats.in_full)
        made.filters["brief"] = pass_context(formats.brief)
        made.filters["is_near"] = pass_context(formats.is_near)
        made.filters["zone_name"] = pass_context(formats.zone_name)
        made.filters["day"] = pass_context(formats.day)
        made.filters["clock"] = pass_context(formats.clock)
        made.filters["ago"] = pass_context(formats.ago)
        made.filters["number"] = pass_context(formats.number)
        made.filters["percent"] = pass_context(formats.percent)
        made.filters["own_name"] = own_name
        made.filters["anchor"] = marks.anchor
        made.filters["chat_class"] = chat_class
        made.filters["hue"] = marks.hue
        made.filters["initials"] = marks.initials
        made.filters["worded"] = pass_context(refusals.in_page)
        return made

    def render(self, area: str, shown: Render, values: Mapping[str, Any]) -> str:
        """`values` are what every page has; those of the handler win over none of them."""
        template = self._environment.get_template(f"{area}/{shown.template}")
        return template.render({**shown.values, **values})

    def render_frame(self, template: str, values: Mapping[str, Any]) -> str:
        """A page of the frame itself."""
        return self._environment.get_template(template).render(values)


def _fragment(renderer: Renderer, context: "Context", area: str, shown: Render) -> "Markup":
    """What a part of a page shows that another area contributes."""
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2

    around = {name: context[name] for name in FRAME}
    return Markup(renderer.render(area, shown, around))  # noqa: S704 - rendered, so escaped
