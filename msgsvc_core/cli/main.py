"""`msgsvc`: the root command, with its subcommands and error messages."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from msgsvc_core.db import DatabaseTooNew, DatabaseUnavailable, MigrationRefused
from msgsvc_core.db.errors import CopyRefused
from msgsvc_core.db.opening import MigrationsPending
from msgsvc_core.db.unfinished import UnfinishedCopy
from msgsvc_core.kernel.errors import ApiError, SettingsError
from msgsvc_core.kernel.hooks import PluginError

#: Exit codes: the command was refused; the configuration or its environment does not work.
REFUSED, UNUSABLE = 1, 2


#: Where each command is, a function or a `typer.Typer`, in the order of `msgsvc --help`.
COMMANDS = {
    "init": "msgsvc_core.cli.init:init",
    "serve": "msgsvc_core.cli.serve:serve",
    "worker": "msgsvc_core.cli.worker:worker",
    "migrate": "msgsvc_core.cli.database:migrate",
    "copy": "msgsvc_core.cli.copies:copy_command",
    "backup": "msgsvc_core.cli.copies:backup_command",
    "restore": "msgsvc_core.cli.copies:restore_command",
    "secrets": "msgsvc_core.cli.secret_keys:app",
    "doctor": "msgsvc_core.cli.doctor:doctor",
    "plugins": "msgsvc_core.cli.plugins:plugins",
    "openapi": "msgsvc_core.cli.openapi:openapi_command",
    "reference": "msgsvc_core.cli.reference:reference",
    "project": "msgsvc_core.cli.projects:app",
    "key": "msgsvc_core.cli.keys:app",
    "member": "msgsvc_core.cli.members:app",
    "outbox": "msgsvc_core.cli.outbox:app",
    "jobs": "msgsvc_core.cli.jobs:app",
    "top": "msgsvc_core.cli.top:top",
    "explain": "msgsvc_core.cli.explain:explain",
    "broadcast": "msgsvc_core.cli.broadcast:app",
    "channels": "msgsvc_core.cli.channels:app",
}

#: Commands for `make`, which the help does not list.
HIDDEN = {"reference"}

#: Entry point group of commands: a `typer.Typer`, by the name of the command.
COMMANDS_GROUP = "msgsvc.commands"

#: Commands of optional distributions: the error names the distribution to install.
BROUGHT_BY = {"demo": "msgsvc-devkit", "plugin": "msgsvc-devkit"}


class _Names(dict[str, Any]):
    """Of its keys typer suggests one for a misspelled command. They are looked for then: that reads the
    metadata of all that is installed."""

    def __init__(self, group: "Commands", context: Any) -> None:
        super().__init__()
        self._list = partial(group.list_commands, context)

    def keys(self) -> Any:
        return dict.fromkeys(self._list()).keys()


class Commands(TyperGroup):
    """Prints errors that the user can fix without a traceback, which is for bugs.

    A command is loaded when it is called or listed: `serve` holds no other in memory.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *sorted(entry_points(group=COMMANDS_GROUP).names - COMMANDS.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS:
            module, _, attribute = COMMANDS[cmd_name].partition(":")
            return _command(cmd_name, getattr(import_module(module), attribute))
        for point in entry_points(group=COMMANDS_GROUP, name=cmd_name):
            return _command(cmd_name, point.load())
        if cmd_name in BROUGHT_BY:
            text = f"`msgsvc {cmd_name}` comes with {BROUGHT_BY[cmd_name]}: pip install it"
            raise _exit(text, UNUSABLE)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        self.commands = _Names(self, ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ApiError as error:
            raise _exit(error.message, REFUSED) from error
        except (CopyRefused, MigrationRefused) as error:
            raise _exit(str(error), REFUSED) from error
        except DatabaseUnavailable as error:
            text = f"the database can't be used: {error}\nrun `msgsvc doctor` for details"
            raise _exit(text, UNUSABLE) from error
        except (
            SettingsError,
            PluginError,
            MigrationsPending,
            DatabaseTooNew,
            UnfinishedCopy,
        ) as error:
            raise _exit(str(error), UNUSABLE) from error


def _command(name: str, found: typer.Typer | Callable[..., None]) -> Any:
    if not isinstance(found, typer.Typer):
        function, found = found, typer.Typer(add_completion=False)
        found.command(hidden=name in HIDDEN)(function)
    command = typer.main.get_command(found)
    command.name = name
    return command


def _exit(text: str, code: int) -> typer.Exit:
    typer.echo(f"msgsvc: {text}", err=True)
    return typer.Exit(code)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    # Typer's own tracebacks show local variables, including secrets.
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"msgsvc {version('msgsvc-core')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Notifications and sign-in through messengers, self-hosted."""
