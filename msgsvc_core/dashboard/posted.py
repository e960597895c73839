"""A submitted dashboard form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from msgsvc_core.kernel.values import whole_number


@dataclass(frozen=True, slots=True)
class PostedFile:
    """An uploaded file, with the client's file name."""

    file: IO[bytes]
    filename: str
    content_type: str
    size: int


@dataclass(frozen=True, slots=True)
class PostedForm:
    """Texts by name, in the order of the page; a name may occur several times."""

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Mapping[str, Sequence[PostedFile]] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """The first text of a name, its line ends as `\\n`; browsers send `\\r\\n`."""
        given = self.values.get(name)
        return given[0].replace("\r\n", "\n") if given else default

    def texts(self, name: str) -> list[str]:
        """All texts of a name; of checkboxes, those that are checked."""
        return [text.replace("\r\n", "\n") for text in self.values.get(name, ())]

    def number(self, name: str) -> int | str:
        """The value as an integer; otherwise the text, for `validate` to reject."""
        text = self.text(name).strip()
        found = whole_number(text)
        return text if found is None else found

    def checked(self, name: str) -> bool:
        return bool(self.values.get(name))

    def file(self, name: str) -> PostedFile | None:
        """The first file that was chosen; None if there is none."""
        given = self.files.get(name)
        return given[0] if given else None

    def starting_with(self, prefix: str) -> "PostedForm":
        """The values whose names start with `prefix`, by what follows it."""
        return PostedForm(
            {
                name.removeprefix(prefix): texts
                for name, texts in self.values.items()
                if name.startswith(prefix)
            }
        )

    def __contains__(self, name: object) -> bool:
        return name in self.values
