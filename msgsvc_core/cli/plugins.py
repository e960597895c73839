"""`msgsvc plugins`: installed and loaded plugins, those of `plugins_dir`, and the hooks they implement."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import pluggy
import typer

from msgsvc_core.cli.configuration import ConfigOption, read_settings
from msgsvc_core.cli.tables import show_table
from msgsvc_core.config.defaults import default_plugins
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_core.plugins.hookspecs import HookSpecs
from msgsvc_core.plugins.loading import (
    available_plugins,
    load_plugin_file,
    load_plugins,
    plugin_files,
)


@dataclass(frozen=True, slots=True)
class PluginState:
    """A row of the table. `version` is the file's name for a plugin of `plugins_dir`; `fault` is the reason
    why the plugin can't be loaded."""

    name: str
    installed: bool
    loaded: bool
    version: str = ""
    hooks: tuple[str, ...] = ()
    fault: str = ""


def plugins(config: ConfigOption = None) -> None:
    """List plugins, installed or of plugins_dir: version, whether loaded, and the hooks they implement."""
    wanted, folder = _wanted(config)
    rows = [_row(state) for state in plugin_states(wanted, folder)]
    if not rows:
        typer.echo("no plugins are installed")
        return
    show_table(["plugin", "version", "loaded", "hooks"], rows)


def plugin_states(wanted: Sequence[str], folder: Path | None = None) -> list[PluginState]:
    """Every installed or wanted plugin: the wanted ones first, in their order, then those of the folder
    (`plugins_dir`), then others by name."""
    installed = available_plugins()
    others = sorted(set(installed) - set(wanted))
    return [
        *(_state(name, installed.get(name), loaded=True) for name in wanted),
        *(_state_of_file(name, path) for name, path in plugin_files(folder).items()),
        *(_state(name, installed[name], loaded=False) for name in others),
    ]


def _row(state: PluginState) -> list[str]:
    return [
        state.name,
        state.version if state.installed else "not installed",
        "yes" if state.loaded else "no",
        state.fault or ", ".join(state.hooks),
    ]


def _state(name: str, point: EntryPoint | None, *, loaded: bool) -> PluginState:
    if point is None:
        return PluginState(name, installed=False, loaded=False)
    version = point.dist.version if point.dist else ""
    try:
        manager = load_plugins([name])
    except PluginError as error:
        return PluginState(name, installed=True, loaded=False, version=version, fault=str(error))
    hooks = _hooks(manager, name)
    return PluginState(name, installed=True, loaded=loaded, version=version, hooks=hooks)


def _state_of_file(name: str, path: Path) -> PluginState:
    try:
        hooks = _hooks(load_plugins([], [(name, load_plugin_file(path))]), name)
    except PluginError as error:
        return PluginState(name, installed=True, loaded=False, version=path.name, fault=str(error))
    return PluginState(name, installed=True, loaded=True, version=path.name, hooks=hooks)


def _hooks(manager: pluggy.PluginManager, name: str) -> tuple[str, ...]:
    """The hooks that a plugin implements."""
    callers = manager.get_hookcallers(manager.get_plugin(name)) or []
    implemented = {caller.name for caller in callers}
    return tuple(
        hook for hook, _ in inspect.getmembers(HookSpecs, inspect.isfunction) if hook in implemented
    )


def _wanted(config: ConfigOption) -> tuple[Sequence[str], Path | None]:
    """The plugins of the configuration and its `plugins_dir`; the defaults if it is missing or invalid."""
    try:
        settings = read_settings(config)
        return settings.loaded_plugins, settings.plugins_dir
    except SettingsError:
        typer.echo("no valid configuration: showing the defaults; see `msgsvc doctor`", err=True)
        return default_plugins(), None
