"""Names of a package that are imported when they are first asked for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """What a package assigns to `__getattr__`: `modules` says which of its modules has each name."""

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find
