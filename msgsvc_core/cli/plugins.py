"""`msgsvc plugins`: installed and loaded plugins, and the hooks they implement."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import typer

from msgsvc_core.cli.configuration import ConfigOption, read_settings
from msgsvc_core.cli.tables import show_table
from msgsvc_core.config.defaults import default_plugins
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_core.plugins.hookspecs import HookSpecs
from msgsvc_core.plugins.loading import available_plugins, load_plugins


@dataclass(frozen=True, slots=True)
class PluginState:
    """A row of the table. `fault` is the reason why the plugin can't be loaded."""

    name: str
    installed: bool
    loaded: bool
    version: str = ""
    hooks: tuple[str, ...] = ()
    fault: str = ""


def plugins(config: ConfigOption = None) -> None:
    """List installed plugins: version, whether loaded, and the hooks they implement."""
    rows = [_row(state) for state in plugin_states(_wanted(config))]
    if not rows:
        typer.echo("no plugins are installed")
        return
    show_table(["plugin", "version", "loaded", "hooks"], rows)


def plugin_states(wanted: Sequence[str]) -> list[PluginState]:
    """Every installed or wanted plugin: the wanted ones first, in their order, then others by name."""
    installed = available_plugins()
    names = [*wanted, *sorted(set(installed) - set(wanted))]
    return [_state(name, installed.get(name), loaded=name in wanted) for name in names]


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
    callers = manager.get_hookcallers(manager.get_plugin(name)) or []
    implemented = {caller.name for caller in callers}
    hooks = tuple(
        hook for hook, _ in inspect.getmembers(HookSpecs, inspect.isfunction) if hook in implemented
    )
    return PluginState(name, installed=True, loaded=loaded, version=version, hooks=hooks)


def _wanted(config: ConfigOption) -> Sequence[str]:
    """The plugins of the configuration; the defaults if it is missing or invalid."""
    try:
        return read_settings(config).plugins
    except SettingsError:
        typer.echo("no valid configuration: showing the defaults; see `msgsvc doctor`", err=True)
        return default_plugins()
