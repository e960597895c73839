"""The door of the plugin: what it declares, each handed on to the file that has it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgsvc_core.dashboard import Pages
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard.frame import Site
from msgsvc_dashboard.overview import pages


@hookimpl
def register_locale() -> Path:
    return Path(__file__).parent / "locale"


@hookimpl
def register_dashboard() -> Sequence[Pages]:
    return [pages]


@hookimpl
def register_pages(service: Service) -> Sequence[Any]:
    return Site(service).routes()
