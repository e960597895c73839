"""Raw values of a submitted form."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

#: Names beside those of a form's fields: the token of the page, and the language it was read in.
TOKEN, LANG = "_token", "_lang"


@dataclass(frozen=True, slots=True)
class PostedFile:
    """An uploaded file, with the client's file name."""

    file: IO[bytes]
    filename: str
    size: int

    def fingerprint(self) -> str:
        """What the same file under the same name has alike. Reads all of it."""
        self.file.seek(0)
        digest = hashlib.sha256(self.filename.encode())
        while chunk := self.file.read(256 * 1024):
            digest.update(chunk)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Posted:
    """Values by name: those of JSON unchanged, those of a form's encoding as lists of texts, since names
    may repeat."""

    values: Mapping[str, Any]
    files: Mapping[str, Sequence[PostedFile]] = field(default_factory=dict)
    is_json: bool = False

    def text(self, name: str) -> str:
        """The first text of a name; empty without one."""
        value = self.values.get(name)
        if isinstance(value, list):
            value = value[0] if value else ""
        return value if isinstance(value, str) else ""

    def given(self, name: str, *, several: bool) -> Any:
        """What was given as the answer to a question, of which there may be `several`."""
        value = self.values.get(name)
        if self.is_json or several or not isinstance(value, list):
            return value
        return value[0] if value else None

    def typed(self) -> dict[str, list[str]]:
        """All texts as they were typed, to be shown again."""
        shown = {}
        for name, value in self.values.items():
            values = value if isinstance(value, list) else [value]
            shown[name] = [str(one) for one in values if isinstance(one, str | int | float)]
        return shown

    @property
    def names(self) -> set[str]:
        return {*self.values, *self.files}
