"""`msgsvc plugin new`: creates a plugin's package."""

from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.cli.tables import show_table
from msgsvc_devkit.scaffold.packages import NewPlugin, NotWritable, write_package

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Create plugins.")
new = typer.Typer(no_args_is_help=True, help="Create a plugin package with its tests.")
app.add_typer(new, name="new")

#: The files to adapt first.
NEXT_FILES = {
    "channel": {
        "channel.py": "the methods that the core calls",
        "client.py": "the platform's API, and reasons of its errors",
        "updates.py": "parses what users do",
    },
    "area": {
        "routes.py": "the endpoints",
        "service.py": "the rules",
        "store.py": "the SQL, for the tables of migrations/",
        "inbound.py": "replies of the bot",
    },
}
GUIDES = {"channel": "docs/guides/write-a-channel.md", "area": "docs/guides/write-an-area.md"}

Name = Annotated[
    str, typer.Argument(help="Name of the plugin, e.g. matrix: letters, digits, underscores.")
]
Directory = Annotated[
    Path | None,
    typer.Option("--directory", "-d", help="Folder to create (default: msgsvc-NAME)."),
]
Author = Annotated[str, typer.Option("--author", help="Author for the package metadata.")]
Description = Annotated[str, typer.Option("--description", help="One-sentence description.")]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="For a platform without buttons and start links, such as Matrix or SMS.",
    ),
]


@new.command("channel")
def new_channel(
    name: Name,
    directory: Directory = None,
    author: Author = "",
    description: Description = "",
    plain: Plain = False,
) -> None:
    """Create a channel plugin: a messenger over HTTP, with a fake server and the conformance kit."""
    _write(NewPlugin("channel", name, author, description, plain), directory)


@new.command("area")
def new_area(
    name: Name, directory: Directory = None, author: Author = "", description: Description = ""
) -> None:
    """Create an area plugin: endpoints, tables, events and texts, with the conformance kit."""
    _write(NewPlugin("area", name, author, description), directory)


def _write(plugin: NewPlugin, directory: Path | None) -> None:
    kind = plugin.kind
    folder = directory or Path(plugin.distribution)
    try:
        files = write_package(plugin, folder)
    except NotWritable as problem:
        typer.echo(f"msgsvc: {problem}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"wrote {folder}, {len(files)} files; adapt these first")
    meanings = NEXT_FILES[kind]
    rows = [[f"{plugin.package}/{file}", meaning] for file, meaning in meanings.items()]
    show_table(["file", "contents"], rows)
    typer.echo(f"next: cd {folder}; pip install --editable '.[test]'; python -m pytest")
    typer.echo(f"guide: README.md there, and {GUIDES[kind]}")
