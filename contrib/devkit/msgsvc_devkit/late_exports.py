"""Lazy imports of a package's names."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_exports(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A module-level `__getattr__` that imports names on first access; `modules` maps names to modules."""

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    return find
