"""Renders the templates in this folder into a plugin's package, or into a plugin of one file."""

import keyword
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgsvc_core.channels.contract import Identity
from msgsvc_core.config.settings import Settings
from msgsvc_core.plugins.loading import available_plugins

if TYPE_CHECKING:
    from jinja2 import Environment

Kind = Literal["channel", "area"]

#: What people are known by before they ever wrote, if the platform knows them by an address.
AddressKind = Literal["email", "phone"]

TEMPLATES = Path(__file__).parent / "templates"

#: The suffix of templates, removed from the names of rendered files.
SUFFIX = ".jinja"

#: Placeholders for the plugin's name in names of folders and files.
PACKAGE_FOLDER, NAME_IN_PATH = "package", "NAME"

#: Also the name of a Python module and of a settings section, and the prefix of tables.
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")

#: Maximum characters of a name: tables with it as prefix must stay within PostgreSQL's 63.
MAX_NAME_LENGTH = 24


class NotWritable(Exception):
    """The plugin can't be written. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Platform:
    """How the platform of a new channel differs from one with everything, which the channel polls.

    Each is a capability of the channel contract (`msgsvc_core.channels.Capabilities`), except `webhook` and
    `upload`.
    """

    #: Users reply with a number.
    no_buttons: bool = False
    #: Its links have no payload.
    no_start_links: bool = False
    no_edits: bool = False
    #: It drops a message with a key that it knows.
    repeatable: bool = False
    #: It reports that messages were delivered and read.
    reports: bool = False
    #: It takes the content of files, and does not download them.
    upload: bool = False
    #: Its chats have threads, e.g. topics.
    threads: bool = False
    #: It calls the service, which does not poll.
    webhook: bool = False
    #: What people are known by before they ever wrote; None if they have to begin.
    addresses: AddressKind | None = None
    #: What a sign-in proves; None for what follows from `addresses`.
    identity: Identity | None = None

    @property
    def proves(self) -> Identity:
        by_address: dict[AddressKind | None, Identity] = {"email": "mailbox", "phone": "phone"}
        return self.identity or by_address.get(self.addresses, "account")


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """The plugin to create. `name` is the entry point's."""

    kind: Kind
    name: str
    author: str = ""
    description: str = ""
    #: For a channel.
    platform: Platform = Platform()

    @property
    def package(self) -> str:
        """The name of the Python package."""
        return f"msgsvc_{self.name}"

    @property
    def distribution(self) -> str:
        """The name of the distribution."""
        return f"msgsvc-{self.name.replace('_', '-')}"

    @property
    def title(self) -> str:
        """The prefix of its class names."""
        return "".join(part.capitalize() for part in self.name.split("_"))


def check_name(name: str) -> None:
    """Raises `NotWritable` for an invalid name."""
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise NotWritable(
            f"{name!r} can't name a plugin: at most {MAX_NAME_LENGTH} of a-z, 0-9 and single"
            " underscores between them, beginning with a letter"
        )
    if keyword.iskeyword(name) or name in {*Settings.model_fields, "core"}:
        raise NotWritable(f"{name!r} is a word of Python or of msgsvc itself; take another name")
    if name in available_plugins():
        raise NotWritable(f"a plugin named {name!r} is installed already; take another name")


def write_package(plugin: NewPlugin, folder: Path) -> list[Path]:
    """Writes the package into a new folder; returns the files' relative paths. Raises `NotWritable`."""
    check_name(plugin.name)
    for text in (plugin.author, plugin.description):
        if any(character in text for character in '"\\') or not text.isprintable():
            raise NotWritable(f"{text!r} can't be quoted: leave out quotes, backslashes, line ends")
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise NotWritable(f"{folder} exists already; name another folder by --directory") from None
    except OSError as error:
        raise NotWritable(f"{folder} can't be made: {error.strerror}") from None
    written = {_target(path, plugin): text for path, text in _rendered(plugin).items()}
    for path, text in written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return sorted(written)


def write_file(plugin: NewPlugin, folder: Path) -> Path:
    """Writes the plugin as one file, for a folder that is `plugins_dir`; returns its path. Raises
    `NotWritable`."""
    check_name(plugin.name)
    path = folder / f"{plugin.name}.py"
    environment = _environment(TEMPLATES / "minimal")
    text = environment.get_template(f"{plugin.kind}.py{SUFFIX}").render(_values(plugin))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise NotWritable(f"{path} exists already; take another name") from None
    except OSError as error:
        raise NotWritable(f"{path} can't be written: {error.strerror}") from None
    return path


def _rendered(plugin: NewPlugin) -> dict[Path, str]:
    root = TEMPLATES / plugin.kind
    environment, values = _environment(root), _values(plugin)
    paths = [path.relative_to(root) for path in sorted(root.rglob(f"*{SUFFIX}"))]
    return {path: environment.get_template(path.as_posix()).render(values) for path in paths}


def _environment(root: Path) -> "Environment":
    # Otherwise every command would import it, and a server keep it in memory.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - only needed to create a plugin

    return Environment(
        loader=FileSystemLoader(root),
        # Python code contains braces, and the output is not HTML.
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - it writes Python
    )


def _values(plugin: NewPlugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "package": plugin.package,
        "distribution": plugin.distribution,
        "title": plugin.title,
        "author": plugin.author,
        **asdict(plugin.platform),
        "identity": plugin.platform.proves,
        "description": plugin.description or _description(plugin),
    }


def _description(plugin: NewPlugin) -> str:
    if plugin.kind == "channel":
        return f"The messenger {plugin.title} as a channel of msgsvc."
    return f"The area {plugin.name} of msgsvc."


def _target(path: Path, plugin: NewPlugin) -> Path:
    parts = [plugin.package if part == PACKAGE_FOLDER else part for part in path.parts]
    parts[-1] = parts[-1].removesuffix(SUFFIX).replace(NAME_IN_PATH, plugin.name)
    return Path(*parts)
