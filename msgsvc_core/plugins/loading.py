"""Finds plugins by entry point, loads those that are named, and refuses what they get wrong."""

import difflib
import inspect
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any, TypeVar

import pluggy

from msgsvc_core.kernel.entry_points import installed
from msgsvc_core.kernel.hooks import PluginError, flatten
from msgsvc_core.plugins.hookspecs import PROJECT, HookSpecs

ENTRY_POINT_GROUP = "msgsvc.plugins"

D = TypeVar("D")

#: Whether each hook is async.
_IS_ASYNC = {
    name: inspect.iscoroutinefunction(spec)
    for name, spec in inspect.getmembers(HookSpecs, inspect.isfunction)
}


def available_plugins() -> dict[str, EntryPoint]:
    """The installed plugins by name, loaded or not. One installed later is found by the next process."""
    return {point.name: point for point in installed(ENTRY_POINT_GROUP)}


def load_plugins(
    names: Sequence[str], extra: Iterable[tuple[str, Any]] = ()
) -> pluggy.PluginManager:
    """A plugin manager with the named plugins, in that order, and `extra` objects by name."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    installed = available_plugins() if names else {}
    # pluggy calls the plugin registered last first; reversed, hooks run in the order of the setting.
    plugins = [(name, _load(name, installed)) for name in names] + list(extra)
    try:
        for name, plugin in reversed(plugins):
            manager.register(plugin, name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"a plugin implements a hook, or takes an argument, that this core does not have: {error}"
        ) from error
    except ValueError as error:
        raise PluginError(f"a plugin is named twice: {error}") from error
    _check_sync_or_async(manager)
    return manager


def create_plugins(manager: pluggy.PluginManager, context: Any) -> None:
    """Has every plugin with `create_plugin` make its object, whose hooks are called as the plugin's own.

    Raises `PluginError` for a hook that this core does not have, or that must be sync or async.
    """
    made = [
        (implementation.plugin_name, implementation.function(context))
        for implementation in reversed(manager.hook.create_plugin.get_hookimpls())
    ]
    try:
        # pluggy calls the plugin registered last first.
        for name, plugin in reversed(made):
            manager.register(plugin, f"{name} object")
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(
            f"a plugin implements a hook, or takes an argument, that this core does not have: {error}"
        ) from error
    _check_sync_or_async(manager)


def unloaded_events(loaded: Collection[str]) -> dict[str, str]:
    """Events of plugins that are installed and not loaded: the plugin's name by the event's.

    It imports them, which takes a moment. One that can't be imported has no events here.
    """
    found: dict[str, str] = {}
    for name in available_plugins():
        if name not in loaded:
            # A plugin that is not enabled may be broken; `msgsvc plugins` reports it.
            with suppress(PluginError):
                events = flatten(load_plugins([name]).hook.register_events())
                found |= {event.name: name for event in events}
    return found


def package(plugin: Any) -> str:
    """The package that a plugin, a module or an object, is of."""
    module = plugin if inspect.ismodule(plugin) else type(plugin)
    name = module.__name__ if inspect.ismodule(plugin) else module.__module__
    return str(name).partition(".")[0]


def _load(name: str, installed: dict[str, EntryPoint]) -> ModuleType:
    point = installed.get(name)
    if point is None:
        known = ", ".join(sorted(installed)) or "none"
        # No package is proposed by this name: of a mistyped one anybody could be the author.
        close = difflib.get_close_matches(name, list(installed), n=1)
        hint = f"did you mean {close[0]!r}? Otherwise " if close else ""
        raise PluginError(
            f"plugin {name!r} is not installed (installed: {known}); {hint}install the package that"
            " brings it, or take it out of `plugins`"
        )
    try:
        module: ModuleType = point.load()
    except Exception as error:
        raise PluginError(f"plugin {name!r} can't be imported: {error!r}") from error
    return module


def _check_sync_or_async(manager: pluggy.PluginManager) -> None:
    """pluggy itself is sync: a coroutine that nobody awaits would be lost without a word."""
    for name, wanted in _IS_ASYNC.items():
        for implementation in getattr(manager.hook, name).get_hookimpls():
            if inspect.iscoroutinefunction(implementation.function) is not wanted:
                kind = "async def" if wanted else "a plain def"
                raise PluginError(
                    f"plugin {implementation.plugin_name!r}: hook {name} must be {kind}"
                )
