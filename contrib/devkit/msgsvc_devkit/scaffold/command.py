"""`msgsvc plugin new`: creates a plugin's package."""

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
    write_package,
)

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
    _write(NewPlugin("channel", name, author, description, platform), directory)


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
