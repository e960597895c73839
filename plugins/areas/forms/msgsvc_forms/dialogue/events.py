"""Events of a conversation: actions of the user."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file that came with a message; it may still be downloading."""

    file_id: str
    type: str
    filename: str = ""
    mime_type: str = ""
    size: int = 0

    def to_value(self) -> dict[str, Any]:
        """As it stands in an answer."""
        return {
            "file_id": self.file_id,
            "filename": self.filename,
            "mime_type": self.mime_type,
            "size": self.size,
            "type": self.type,
        }


@dataclass(frozen=True, slots=True)
class Said:
    """A message. `ref` is the platform's id of it, by which a later edit is matched."""

    text: str
    ref: str | None = None
    files: tuple[GivenFile, ...] = ()
    #: Why the files can't be taken, e.g. as one is too large.
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Edited:
    """A message was edited."""

    text: str
    ref: str


@dataclass(frozen=True, slots=True)
class CommandSent:
    """A command: `back`, `skip`, `cancel`, `keep`, `done`, `send`, `again`, `later`, `go`, `anew`."""

    name: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button: the same words as commands, or one with an `argument`, such as `pick` and `3`.

    `turn` identifies its question.
    """

    turn: int
    action: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """A link to this form, or to another (`slug`), was opened during the conversation."""

    slug: str


@dataclass(frozen=True, slots=True)
class FileLost:
    """A file of an answer could not be downloaded from the platform."""

    file_id: str
    why: str


Event = Said | Edited | CommandSent | Pressed | Opened | FileLost
