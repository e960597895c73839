"""The icons of all pages, read from one sprite."""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup

SPRITE = Path(__file__).parent / "static" / "icons.svg"

_SYMBOL = re.compile(r'<symbol id="([a-z-]+)" viewBox="0 0 24 24">(.+)</symbol>')


@cache
def shapes() -> dict[str, str]:
    """The outline of each icon by its name, as SVG elements in a square of 24 by 24."""
    return dict(_SYMBOL.findall(SPRITE.read_text("utf-8")))


def icon(name: str) -> "Markup":
    """An icon as an element of the page, which needs no other request. Screen readers skip it: a text stands
    beside it. A name that does not exist gives a dot."""
    from markupsafe import Markup  # noqa: PLC0415 - comes with jinja2, which loads with the first page

    found = shapes()
    shape = found.get(name) or found["dot"]
    svg = (
        f'<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">{shape}</svg>'
    )
    return Markup(svg)  # noqa: S704 - our own file
