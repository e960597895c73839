"""The page as HTML, with inline style and script that the content security policy allows by their hashes."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgsvc_core.pages import NO_DEVICES
from msgsvc_core.projects.branding import PageBrand

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent / "templates"


class Page:
    """Renders the page. `frames` are the sites that may frame it."""

    def __init__(self, frames: Sequence[str]) -> None:
        self._frames = " ".join(frames) or "'none'"

    def render(
        self,
        lang: str,
        texts: Mapping[str, str],
        links: Sequence[tuple[str, str]] | None,
        brand: PageBrand | None = None,
    ) -> str:
        """`links` lead to the bots, each with its messenger's name; None if the sign-in does not exist."""
        template = self._templates.get_template("page.html")
        return template.render(
            lang=lang,
            texts=texts,
            links=links,
            brand=brand,
            style=self._style,
            script=self._script,
        )

    @cached_property
    def headers(self) -> dict[str, str]:
        """Nothing is loaded from elsewhere, from here only the project's colours and logo; nothing is posted
        but to us."""
        policy = {
            "default-src": "'none'",
            "script-src": _hash(self._script),
            "style-src": f"'self' {_hash(self._style)}",
            "img-src": "'self'",
            "connect-src": "'self'",
            "form-action": "'none'",
            "base-uri": "'none'",
            "frame-ancestors": self._frames,
        }
        return {
            "Content-Security-Policy": "; ".join(
                f"{name} {where}" for name, where in policy.items()
            ),
            "Referrer-Policy": "no-referrer",
            "Permissions-Policy": NO_DEVICES,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }

    @cached_property
    def _style(self) -> str:
        return (_FOLDER / "page.css").read_text(encoding="utf-8")

    @cached_property
    def _script(self) -> str:
        return (_FOLDER / "page.js").read_text(encoding="utf-8")

    @cached_property
    def _templates(self) -> "Environment":
        # 2 MiB that a process may do without which nobody asks for pages.
        from jinja2 import Environment, FileSystemLoader  # noqa: PLC0415 - with the first page

        return Environment(
            loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )


@cache
def page_for(frames: tuple[str, ...]) -> Page:
    """The page, whose files are read once."""
    return Page(frames)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
