"""`msgsvc`: the root command, with its subcommands and error messages."""

from importlib.metadata import entry_points, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from msgsvc_core.cli.broadcast import app as broadcast
from msgsvc_core.cli.channels import app as channels
from msgsvc_core.cli.database import migrate
from msgsvc_core.cli.doctor import doctor
from msgsvc_core.cli.init import init
from msgsvc_core.cli.jobs import app as jobs
from msgsvc_core.cli.keys import app as keys
from msgsvc_core.cli.members import app as members
from msgsvc_core.cli.plugins import plugins
from msgsvc_core.cli.projects import app as projects
from msgsvc_core.cli.reference import reference
from msgsvc_core.cli.serve import serve
from msgsvc_core.cli.worker import worker
from msgsvc_core.config.settings import SettingsError
from msgsvc_core.db import DatabaseTooNew, DatabaseUnavailable
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.kernel.hooks import PluginError
from msgsvc_core.service import MigrationsPending

#: Exit codes: the command was refused; the configuration or its environment does not work.
REFUSED, UNUSABLE = 1, 2


#: Entry point group of commands: a `typer.Typer`, by the name of the command.
COMMANDS_GROUP = "msgsvc.commands"

#: Commands of optional distributions: the error names the distribution to install.
BROUGHT_BY = {"demo": "msgsvc-devkit", "plugin": "msgsvc-devkit"}


class Commands(TyperGroup):
    """Prints errors that the user can fix without a traceback, which is for bugs.

    Commands of other distributions are loaded when they are called or listed.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        known = super().list_commands(ctx)
        return [*known, *sorted(entry_points(group=COMMANDS_GROUP).names - set(known))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        for point in entry_points(group=COMMANDS_GROUP, name=cmd_name):
            found = typer.main.get_command(point.load())
            found.name = cmd_name
            return found
        if cmd_name in BROUGHT_BY:
            text = f"`msgsvc {cmd_name}` comes with {BROUGHT_BY[cmd_name]}: pip install it"
            raise _exit(text, UNUSABLE)
        return None

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except ApiError as error:
            raise _exit(error.message, REFUSED) from error
        except DatabaseUnavailable as error:
            text = f"the database can't be used: {error}\nrun `msgsvc doctor` for details"
            raise _exit(text, UNUSABLE) from error
        except (SettingsError, PluginError, MigrationsPending, DatabaseTooNew) as error:
            raise _exit(str(error), UNUSABLE) from error


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
app.command()(init)
app.command()(serve)
app.command()(worker)
app.command()(migrate)
app.command()(doctor)
app.command()(plugins)
app.command(hidden=True)(reference)
app.add_typer(projects, name="project")
app.add_typer(keys, name="key")
app.add_typer(members, name="member")
app.add_typer(jobs, name="jobs")
app.add_typer(broadcast, name="broadcast")
app.add_typer(channels, name="channels")


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
