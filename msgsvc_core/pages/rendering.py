"""Templates and static files of pages: a plugin's own, and the shared ones."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgsvc_core.kernel.i18n import own_name
from msgsvc_core.pages.icons import icon
from msgsvc_core.pages.static_files import CompressedFiles

if TYPE_CHECKING:
    from jinja2 import Environment


#: The files of `frame.html`, and `tokens.css`, which holds the values of all pages.
SHARED = Path(__file__).parent / "static"


def new_templates(package: str) -> "Environment":
    """Templates in `templates/` of a package, which may extend `frame.html` and use `icons.html` and
    `languages.html`."""
    # Imported late: it takes 2 MiB that a process without pages does not need.
    from jinja2 import (  # noqa: PLC0415 - loaded with the first page
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    from msgsvc_core.pages.compiled_templates import PAGES  # noqa: PLC0415 - comes with jinja2

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("msgsvc_core.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=PAGES,
    )
    environment.filters["own_name"] = own_name
    environment.globals["drawn_icon"] = icon
    return environment


def static_files(folder: Path) -> CompressedFiles:
    """Serves a plugin's files, and those of `frame.html`."""
    return CompressedFiles(directory=folder, packages=[("msgsvc_core.pages", "static")])
