"""Finds plugins by entry point, loads those that are named, and refuses what they get wrong."""

import inspect
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

import pluggy

from msgsvc_core.hookspecs import PROJECT, HookSpecs

ENTRY_POINT_GROUP = "msgsvc.plugins"


class PluginError(Exception):
    """A plugin is missing, or does not fit this core. The text says which and what to do."""


def available_plugins() -> dict[str, EntryPoint]:
    """The installed plugins by name, loaded or not."""
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def load_plugins(
    names: Sequence[str], extra: Iterable[tuple[str, Any]] = ()
) -> pluggy.PluginManager:
    """A plugin manager with the named plugins, in that order, and `extra` objects by name."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    installed = available_plugins()
    # pluggy calls the plugin registered last first; reversed, hooks run in the order of the setting.
    plugins = [(name, _load(name, installed)) for name in names] + list(extra)
    for name, plugin in reversed(plugins):
        manager.register(plugin, name)
    try:
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"a plugin implements a hook that this core does not have: {error}"
        ) from error
    _check_sync_or_async(manager)
    return manager


def answers(results: Iterable[Iterable[Any]]) -> list[Any]:
    """The declarations of all plugins in one list; hooks answer with a sequence a plugin."""
    return [item for result in results for item in result]


def _load(name: str, installed: dict[str, EntryPoint]) -> ModuleType:
    point = installed.get(name)
    if point is None:
        known = ", ".join(sorted(installed)) or "none"
        raise PluginError(
            f"plugin {name!r} is not installed (installed: {known}); install it, for example with "
            f"`pip install msgsvc-{name}`, or take it out of `plugins`"
        )
    try:
        module: ModuleType = point.load()
    except Exception as error:
        raise PluginError(f"plugin {name!r} can't be imported: {error!r}") from error
    return module


def _check_sync_or_async(manager: pluggy.PluginManager) -> None:
    """pluggy itself is sync: a coroutine that nobody awaits would be lost without a word."""
    for name, spec in inspect.getmembers(HookSpecs, inspect.isfunction):
        wanted = inspect.iscoroutinefunction(spec)
        for implementation in getattr(manager.hook, name).get_hookimpls():
            if inspect.iscoroutinefunction(implementation.function) is not wanted:
                kind = "async def" if wanted else "a plain def"
                raise PluginError(
                    f"plugin {implementation.plugin_name!r}: hook {name} must be {kind}"
                )
