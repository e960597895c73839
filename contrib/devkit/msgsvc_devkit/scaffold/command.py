"""`msgsvc plugin new`: creates a plugin's package, or a plugin of one file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.channels.contract import Identity
from msgsvc_core.cli.tables import show_table
from msgsvc_devkit.scaffold.packages import (
    AddressKind,
    NewPlugin,
    NotWritable,
    Platform,
    write_file,
    write_package,
)

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Create plugins.")
new = typer.Typer(
    no_args_is_help=True, help="Create a plugin: a package with its tests, or one file."
)
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
FIRST_GUIDES = {"channel": "docs/guides/first-channel.md", "area": "docs/guides/first-area.md"}
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


Minimal = Annotated[
    bool, typer.Option("--minimal", help="Write one file of some 60 lines, for plugins_dir.")
]
Into = Annotated[
    Path | None,
    typer.Option("--into", help="Folder of the file of --minimal (default: the current one)."),
]


def _flag(name: str, help_text: str) -> Any:
    return typer.Option(f"--{name}", help=help_text, rich_help_panel="The platform")


Plain = Annotated[
    bool,
    _flag("plain", "Like Matrix: --no-buttons --no-start-links --repeatable."),
]
NoButtons = Annotated[bool, _flag("no-buttons", "It has no buttons: users reply with a number.")]
NoStartLinks = Annotated[
    bool, _flag("no-start-links", "Its links have no payload: users type a code.")
]
NoEdits = Annotated[bool, _flag("no-edits", "It can't edit messages.")]
Repeatable = Annotated[
    bool,
    _flag("repeatable", "It drops repeats by an idempotency key, such as a transaction id."),
]
Reports = Annotated[
    bool, _flag("reports", "It reports that messages were delivered, read or undeliverable.")
]
Uploads = Annotated[bool, _flag("upload", "It takes the content of files, and no URLs.")]
Threads = Annotated[bool, _flag("threads", "Its chats have threads, such as topics.")]
Webhook = Annotated[bool, _flag("webhook", "It calls a webhook; without this the bot polls.")]
Addresses = Annotated[
    AddressKind | None,
    _flag("addresses", "People are known by an address before they ever wrote."),
]
Proves = Annotated[
    Identity | None,
    _flag("identity", "What a sign-in proves (default: account, or what the address is)."),
]


@new.command("channel")
def new_channel(
    name: Name,
    directory: Directory = None,
    author: Author = "",
    description: Description = "",
    minimal: Minimal = False,
    into: Into = None,
    plain: Plain = False,
    no_buttons: NoButtons = False,
    no_start_links: NoStartLinks = False,
    no_edits: NoEdits = False,
    repeatable: Repeatable = False,
    reports: Reports = False,
    upload: Uploads = False,
    threads: Threads = False,
    webhook: Webhook = False,
    addresses: Addresses = None,
    identity: Proves = None,
) -> None:
    """Create a channel plugin: a messenger over HTTP, with a fake server and the conformance kit."""
    platform = Platform(
        no_buttons=no_buttons or plain,
        no_start_links=no_start_links or plain,
        no_edits=no_edits,
        repeatable=repeatable or plain,
        reports=reports,
        upload=upload,
        threads=threads,
        webhook=webhook,
        addresses=addresses,
        identity=identity,
    )
    _write(NewPlugin("channel", name, author, description, platform), directory, minimal, into)


@new.command("area")
def new_area(
    name: Name,
    directory: Directory = None,
    author: Author = "",
    description: Description = "",
    minimal: Minimal = False,
    into: Into = None,
) -> None:
    """Create an area plugin: endpoints, tables, events and texts, with the conformance kit."""
    _write(NewPlugin("area", name, author, description), directory, minimal, into)


def _write(plugin: NewPlugin, directory: Path | None, minimal: bool, into: Path | None) -> None:
    try:
        if minimal:
            _write_minimal(plugin, directory, into or Path())
        elif into is not None:
            raise NotWritable("--into needs --minimal; a package's folder is named by --directory")
        else:
            _write_package(plugin, directory or Path(plugin.distribution))
    except NotWritable as problem:
        typer.echo(f"msgsvc: {problem}", err=True)
        raise typer.Exit(1) from None


def _write_minimal(plugin: NewPlugin, directory: Path | None, folder: Path) -> None:
    if directory is not None or plugin != NewPlugin(plugin.kind, plugin.name):
        raise NotWritable("--minimal takes no other option than --into")
    path = write_file(plugin, folder)
    typer.echo(f"wrote {path}")
    typer.echo(f'next: plugins_dir = "{folder}" in msgsvc.toml; msgsvc doctor; msgsvc serve')
    typer.echo(f"guide: {FIRST_GUIDES[plugin.kind]}")


def _write_package(plugin: NewPlugin, folder: Path) -> None:
    kind = plugin.kind
    files = write_package(plugin, folder)
    typer.echo(f"wrote {folder}, {len(files)} files; adapt these first")
    meanings = NEXT_FILES[kind]
    rows = [[f"{plugin.package}/{file}", meaning] for file, meaning in meanings.items()]
    show_table(["file", "contents"], rows)
    typer.echo(f"next: cd {folder}; pip install --editable '.[test]'; python -m pytest")
    typer.echo(f"guide: README.md there, and {GUIDES[kind]}")
