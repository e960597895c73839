"""Combines results of hooks: declarations of all plugins, and coroutines awaited in order."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

D = TypeVar("D")


class PluginError(Exception):
    """A plugin is missing, or does not fit this core. The text says which and what to do."""


def flatten(results: Iterable[Iterable[Any]]) -> list[Any]:
    """The declarations of all plugins in one list; hooks answer with a sequence a plugin."""
    return [item for result in results for item in result]


def unique_by_name(what: str, declarations: Iterable[D], attribute: str = "name") -> dict[str, D]:
    """Declarations by their name. Raises `PluginError` when two have the same one."""
    named: dict[str, D] = {}
    for declaration in declarations:
        name = getattr(declaration, attribute)
        if name in named:
            raise PluginError(f"two plugins, or a plugin and the core, declare the {what} {name!r}")
        named[name] = declaration
    return named


def in_order(hook: Any) -> Callable[..., Coroutine[Any, Any, None]]:
    """A function that takes the arguments of an async hook, in their order, and awaits its implementations
    one after the other; the first failure ends it."""
    names: Sequence[str] = hook.spec.argnames

    async def call(*arguments: Any) -> None:
        # Some are called many thousand times a second, and have no implementation in most installations.
        if hook.get_hookimpls():
            await await_in_order(hook(**dict(zip(names, arguments, strict=True))))

    return call


async def await_in_order(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Awaits what the implementations of an async hook returned; the first failure ends it."""
    waiting = list(calls)
    try:
        while waiting:
            await waiting.pop(0)
    finally:
        for call in waiting:
            call.close()
