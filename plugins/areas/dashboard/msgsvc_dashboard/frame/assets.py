"""Stylesheets and scripts, at URLs that change with their content, so that browsers can cache them."""

import hashlib
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

from starlette.responses import Response
from starlette.routing import BaseRoute, Mount

from msgsvc_core.dashboard import Pages
from msgsvc_core.pages import SHARED
from msgsvc_core.pages.static_files import CompressedFiles
from msgsvc_dashboard.frame.addresses import ROOT

STATIC = Path(__file__).parents[1] / "static"

#: Seconds for which a browser keeps a file: a year, the most that caches heed.
KEPT_S = 365 * 24 * 3600


class Assets:
    """The files of the frame, those that all pages share, and those of each area by its name."""

    def __init__(self, areas: Sequence[Pages]) -> None:
        self._folders = {"frame": STATIC, "shared": SHARED, **_folders(areas)}

    @cached_property
    def version(self) -> str:
        """A digest of all files."""
        return _digest(tuple(folder for _, folder in sorted(self._folders.items())))

    def routes(self) -> list[BaseRoute]:
        return [
            Mount(f"{ROOT}/_static/{self.version}/{name}", _KeptFiles(directory=folder))
            for name, folder in self._folders.items()
        ]


class _KeptFiles(CompressedFiles):
    """Files that are never asked for again under the same address."""

    def file_response(self, *args: object, **more: object) -> Response:
        response = super().file_response(*args, **more)  # type: ignore[arg-type] # handed on as it came
        response.headers["Cache-Control"] = f"public, max-age={KEPT_S}, immutable"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response


@cache
def _digest(folders: tuple[Path, ...]) -> str:
    # Services of a process have the same files, and reading them takes longer than building the routes.
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _folders(areas: Sequence[Pages]) -> dict[str, Path]:
    found = {}
    for area in areas:
        spec = find_spec(area.package)
        for place in (spec.submodule_search_locations or []) if spec is not None else []:
            if (Path(place) / "static").is_dir():
                found[area.area] = Path(place) / "static"
    return found
