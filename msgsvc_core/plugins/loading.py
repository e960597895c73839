"""Finds plugins by entry point and in `plugins_dir`, loads those of the configuration, and validates their
hooks."""

import difflib
import inspect
import re
import sys
from collections.abc import Collection, Hashable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import pluggy

from msgsvc_core.kernel.entry_points import installed
from msgsvc_core.kernel.hooks import PluginError, flatten
from msgsvc_core.plugins.hookspecs import PROJECT, HookSpecs

ENTRY_POINT_GROUP = "msgsvc.plugins"

#: Prefix of the modules of files in `plugins_dir`, so that `lark.py` hides no package `lark`.
FILE_MODULE_PREFIX = "msgsvc_plugins_dir_"

#: Names of such files, without the suffix: also names of settings sections.
_FILE_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")

D = TypeVar("D")

#: Whether each hook is async.
_IS_ASYNC = {
    name: inspect.iscoroutinefunction(spec)
    for name, spec in inspect.getmembers(HookSpecs, inspect.isfunction)
}


def available_plugins() -> dict[str, EntryPoint]:
    """The installed plugins by name, loaded or not. One installed later is found by the next process."""
    return {point.name: point for point in installed(ENTRY_POINT_GROUP)}


def plugin_files(folder: Path | None) -> dict[str, Path]:
    """The plugins of a folder (`plugins_dir`) by name: its `*.py` files that don't begin with `_`."""
    files = sorted(folder.glob("*.py")) if folder is not None else []
    return {path.stem: path for path in files if not path.name.startswith("_")}


def load_plugin_file(path: Path) -> ModuleType:
    """The module of a file in `plugins_dir`, imported once per process. Raises `PluginError`, which names the
    file."""
    name, path = path.stem, path.absolute()
    if not _FILE_NAME.fullmatch(name):
        raise PluginError(
            f"{path}: a plugin's name has only a-z, 0-9 and single underscores between them, and begins with"
            " a letter; rename the file"
        )
    if name in available_plugins():
        raise PluginError(f"{path}: an installed plugin is also named {name!r}; rename the file")
    module_name = FILE_MODULE_PREFIX + name
    imported = sys.modules.get(module_name)
    if imported is not None and imported.__file__ == str(path):
        return imported
    spec = spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # Pydantic and dataclasses look a class's module up there.
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        raise PluginError(f"{path} can't be imported: {error!r}") from error
    return module


def load_plugins(
    names: Sequence[str], extra: Iterable[tuple[str, Any]] = (), *, folder: Path | None = None
) -> pluggy.PluginManager:
    """A plugin manager with the named plugins, in that order, those of a folder (`plugins_dir`), and `extra`
    objects by name."""
    manager = _PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    installed = available_plugins() if names else {}
    # pluggy calls the plugin registered last first; reversed, hooks run in the order of the setting.
    plugins = [(name, _load(name, installed)) for name in names]
    plugins += [(name, load_plugin_file(path)) for name, path in plugin_files(folder).items()]
    plugins += extra
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
    """Calls `create_plugin` of every plugin that has it, and registers the object's hooks under the plugin's
    name.

    Raises `PluginError` for an unknown hook, or one that is sync and must be async or the reverse.
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
    """Events of plugins that are installed but not loaded: the name of the event to that of the plugin.

    Imports these plugins, which takes a moment. Those that can't be imported are omitted.
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
    """The package of a plugin, which is a module or an object."""
    module = plugin if inspect.ismodule(plugin) else type(plugin)
    name = module.__name__ if inspect.ismodule(plugin) else module.__module__
    return str(name).partition(".")[0]


class _PluginManager(pluggy.PluginManager):
    """Searches a module or class for hooks once per process. pluggy inspects every attribute each time, which
    took a third of the time of building a service."""

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        options = _marked(module_or_class, f"{PROJECT}_spec").get(name)
        return None if options is None else dict(options)

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        is_module = inspect.ismodule(plugin)
        if not is_module and name in getattr(plugin, "__dict__", ()):
            # An object may also have functions of its own.
            return super().parse_hookimpl_opts(plugin, name)
        owner = cast("Hashable", plugin if is_module else type(plugin))
        options = _marked(owner, f"{PROJECT}_impl").get(name)
        return None if options is None else dict(options)


@lru_cache(maxsize=512)
def _marked(owner: Hashable, mark: str) -> dict[str, dict[str, Any]]:
    """The functions of a module or class that pluggy has marked so, each with its options."""
    found = {name: inspect.getattr_static(owner, name, None) for name in dir(owner)}
    return {
        name: getattr(function, mark) for name, function in found.items() if hasattr(function, mark)
    }


def _load(name: str, installed: dict[str, EntryPoint]) -> ModuleType:
    point = installed.get(name)
    if point is None:
        known = ", ".join(sorted(installed)) or "none"
        # No package on PyPI is suggested for an unknown name: anybody could publish one under a typo.
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
    """pluggy is synchronous: it would silently drop a coroutine that nobody awaits."""
    for name, wanted in _IS_ASYNC.items():
        for implementation in getattr(manager.hook, name).get_hookimpls():
            if inspect.iscoroutinefunction(implementation.function) is not wanted:
                kind = "async def" if wanted else "a plain def"
                raise PluginError(
                    f"plugin {implementation.plugin_name!r}: hook {name} must be {kind}"
                )
