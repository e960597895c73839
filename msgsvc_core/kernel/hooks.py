"""Combines results of hooks: declarations of all plugins, and coroutines awaited in order."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

D = TypeVar("D")


class PluginError(Exception):
    """A plugin is missing, or incompatible with this core. The text says which and what to do."""


def flatten(results: Iterable[Iterable[Any]]) -> list[Any]:
    """The declarations of all plugins in one list; each plugin's hook returns a sequence."""
    return [item for result in results for item in result]


def unique_by_name(what: str, declarations: Iterable[D], attribute: str = "name") -> dict[str, D]:
    """Declarations by their name. Raises `PluginError` for duplicates."""
    named: dict[str, D] = {}
    for declaration in declarations:
        name = getattr(declaration, attribute)
        if name in named:
            raise PluginError(f"two plugins, or a plugin and the core, declare the {what} {name!r}")
        named[name] = declaration
    return named


def in_order(hook: Any) -> Callable[..., Coroutine[Any, Any, None]]:
    """A function that calls the implementations of an async hook in order and awaits each; the first
    exception ends it."""
    names: Sequence[str] = hook.spec.argnames

    async def call(*arguments: Any) -> None:
        # Some hooks are called many thousand times a second, and have no implementation in most
        # installations.
        if hook.get_hookimpls():
            await await_in_order(hook(**dict(zip(names, arguments, strict=True))))

    return call


async def await_in_order(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Awaits the coroutines of an async hook's implementations; the first exception ends it."""
    waiting = list(calls)
    try:
        while waiting:
            await waiting.pop(0)
    finally:
        for call in waiting:
            call.close()
