"""Choices of `msgsvc init`: from options, from prompts in a terminal, or from defaults."""

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import typer
from pydantic import SecretStr

from msgsvc_core.channels.kinds import ChannelKind, WrongSettings, validated
from msgsvc_core.config.defaults import default_channels, default_plugins
from msgsvc_core.config.settings import Settings, load_settings
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.kernel.hooks import PluginError, flatten
from msgsvc_core.plugins.accounts import FirstAccount
from msgsvc_core.plugins.loading import available_plugins, load_plugins

#: The value of `--messenger` that configures no messenger.
NO_MESSENGER = "none"

#: The value of `--token` that reads it from standard input.
STANDARD_INPUT = "-"

#: Placeholder for the required secret key while a URL is validated.
_ANY_KEY = "-" * 32


class WrongChoice(Exception):
    """An option is invalid. The text says which and why."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line; `None` if not given. `token` is `-` for standard input."""

    messenger: str | None = None
    token: str | None = None
    base_url: str | None = None
    areas: str | None = None
    all_plugins: bool = False
    owner: str | None = None


@dataclass(slots=True)
class Installed:
    """The installed plugins: areas, and messengers by their kind, with the plugin of each kind."""

    areas: list[str] = field(default_factory=list)
    kinds: dict[str, ChannelKind] = field(default_factory=dict)
    brought_by: dict[str, str] = field(default_factory=dict)

    @property
    def plugins(self) -> list[str]:
        return [*dict.fromkeys(self.brought_by.values()), *self.areas]


@dataclass(frozen=True, slots=True)
class Choice:
    """Values for the new file. `channels` are tables by name, `owner` is an email address, and
    `first_account` creates the owner's account, if a plugin provides it."""

    base_url: str
    plugins: list[str]
    channels: dict[str, dict[str, Any]]
    first_account: FirstAccount | None
    owner: str | None


def installed_plugins() -> Installed:
    """The installed plugins: the default ones in their order, then others by name."""
    found, there, first = Installed(), available_plugins(), default_plugins()
    for name in [*first, *sorted(there.keys() - set(first))]:
        if name not in there:
            continue
        try:
            kinds = flatten(load_plugins([name]).hook.register_channel_kinds())
        except PluginError as error:
            typer.echo(f"skipped: {error}", err=True)
            continue
        for kind in kinds:
            found.kinds[kind.name] = kind
            found.brought_by[kind.name] = name
        if not kinds:
            found.areas.append(name)
    return found


def choose(installed: Installed, options: Options, *, asking: bool) -> Choice:
    """Prompts for what no option sets, if `asking`. Raises `WrongChoice`."""
    wanted = _wanted_plugins(installed, options)
    messenger = _messenger(installed, options, wanted, asking=asking)
    channels = _channels(installed, messenger, options, asking=asking)
    base_url = _base_url(options, asking=asking)
    if wanted is None:
        wanted = _ask_areas(installed) if asking else installed.areas
    brought = [installed.brought_by[messenger]] if messenger else []
    plugins = list(dict.fromkeys([*brought, *wanted]))
    first_account: FirstAccount | None = load_plugins(plugins).hook.register_first_account()
    owner = _owner(options, first_account, asking=asking)
    return Choice(base_url, plugins, channels, first_account, owner)


def _wanted_plugins(installed: Installed, options: Options) -> list[str] | None:
    """The plugins of `--all` or `--with`; None if neither is given."""
    if options.all_plugins:
        return installed.plugins
    return None if options.areas is None else _named(options.areas, installed.plugins)


def _named(text: str, known: list[str]) -> list[str]:
    """Splits a comma-separated list of plugins. Raises `WrongChoice` for one that is not installed."""
    names = [name for part in text.split(",") if (name := part.strip())]
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise WrongChoice(f"no plugin {name!r} is installed; {hint}There are {_list(known)}")
    return names


def _messenger(
    installed: Installed, options: Options, wanted: list[str] | None, *, asking: bool
) -> str | None:
    kinds = installed.kinds
    chosen = options.messenger
    if chosen is None:
        default = _default_messenger(installed, wanted)
        chosen = _ask_messenger(kinds, default) if asking else default
    if chosen == NO_MESSENGER:
        return None
    if chosen not in kinds:
        raise WrongChoice(
            f"no installed plugin brings a messenger {chosen!r}; there are {_list(list(kinds))}."
            " Install the package of the other one, ours are called msgsvc-<messenger>, or take"
            f" `--messenger {NO_MESSENGER}`"
        )
    return chosen


def _default_messenger(installed: Installed, wanted: list[str] | None) -> str:
    """The messenger of the default channels, unless its plugin is not wanted."""
    for kind in default_channels().values():
        if kind in installed.kinds and (wanted is None or installed.brought_by[kind] in wanted):
            return kind
    return NO_MESSENGER


def _ask_messenger(kinds: Mapping[str, ChannelKind], default: str) -> str:
    typer.echo("Installed messengers:")
    for name, kind in kinds.items():
        typer.echo(f"  {name:12} {kind.about or kind.title}".rstrip())
    while True:
        answer: str = typer.prompt(f"Messenger, or {NO_MESSENGER}", default=default).strip()
        if answer in kinds or answer == NO_MESSENGER:
            return answer
        typer.echo(f"there is no {answer!r}")


def _channels(
    installed: Installed, messenger: str | None, options: Options, *, asking: bool
) -> dict[str, dict[str, Any]]:
    """The messenger's table with its required settings: `{"telegram": {"plugin": ..., "token": ...}}`."""
    needs = _required(installed.kinds[messenger]) if messenger else {}
    if options.token is not None and True not in needs.values():
        raise WrongChoice(f"--token: {messenger or 'no messenger'} takes none")
    if messenger is None:
        return {}
    by_default = {
        name: {"plugin": kind} for name, kind in default_channels().items() if kind == messenger
    }
    if by_default:
        return by_default
    kind = installed.kinds[messenger]
    while True:
        given = _given(kind, options.token) if options.token else {}
        if asking:
            given = {**_ask_required(kind, given), **given}
        try:
            validated(kind, given)
        except WrongSettings as error:
            if not asking or options.token:
                raise WrongChoice(f"{messenger}: {error}{_how(kind, given)}") from None
            typer.echo(str(error))
        else:
            return {messenger: {"plugin": messenger, **given}}


def _required(kind: ChannelKind) -> dict[str, bool]:
    """The required settings of a messenger, and whether each is a secret."""
    fields = kind.settings.model_fields.items()
    return {name: field.annotation is SecretStr for name, field in fields if field.is_required()}


def _given(kind: ChannelKind, token: str) -> dict[str, str]:
    """The secrets given by `--token`; from standard input, one line each."""
    secrets = [name for name, is_secret in _required(kind).items() if is_secret]
    if token == STANDARD_INPUT:
        return {name: sys.stdin.readline().strip() for name in secrets}
    return dict.fromkeys(secrets[:1], token)


def _ask_required(kind: ChannelKind, given: Mapping[str, str]) -> dict[str, str]:
    answers_: dict[str, str] = {}
    for name, is_secret in _required(kind).items():
        if name not in given:
            about = kind.settings.model_fields[name].description or ""
            shown = " (not echoed)" if is_secret else ""
            typer.echo(f"{name}: {about}{shown}")
            answers_[name] = typer.prompt(name, hide_input=is_secret).strip()
    return answers_


def _how(kind: ChannelKind, given: Mapping[str, str]) -> str:
    if given or not any(_required(kind).values()):
        return ""
    return "; pass it with `--token -` on standard input, or in MSGSVC_INIT_TOKEN"


def _base_url(options: Options, *, asking: bool) -> str:
    if options.base_url is not None:
        return _checked_url(options.base_url)
    default: str = Settings.model_fields["base_url"].default
    while asking:
        answer = typer.prompt("Public URL of the service", default=default)
        try:
            return _checked_url(answer.strip())
        except WrongChoice as error:
            typer.echo(str(error))
    return default


def _checked_url(url: str) -> str:
    try:
        return load_settings(env={}, secret_keys=[_ANY_KEY], base_url=url).base_url
    except SettingsError as error:
        raise WrongChoice(str(error)) from None


def _ask_areas(installed: Installed) -> list[str]:
    typer.echo(f"Installed areas: {_list(installed.areas)}")
    while True:
        answer = typer.prompt("Areas, separated by commas, or all", default="all").strip()
        if answer == "all":
            return installed.areas
        try:
            return _named(answer, installed.plugins)
        except WrongChoice as error:
            typer.echo(str(error))


def _owner(options: Options, first_account: FirstAccount | None, *, asking: bool) -> str | None:
    """The email of the first account; None if no plugin provides accounts."""
    if first_account is None:
        if options.owner:
            raise WrongChoice(
                "--owner: accounts need a plugin that provides them, which is left out"
            )
        return None
    if options.owner is not None:
        return _checked_email(options.owner)
    while asking:
        answer = typer.prompt(first_account.question, default="", show_default=False).strip()
        try:
            return _checked_email(answer) if answer else None
        except WrongChoice as error:
            typer.echo(str(error))
    return None


def _checked_email(email: str) -> str:
    try:
        return normalized(email)
    except ValueError as error:
        raise WrongChoice(f"--owner: {error}") from None


def _list(names: list[str]) -> str:
    return ", ".join(names) or "none"
