"""Where an event feed keeps how far it has come."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


class FileCursor:
    """The cursor in a file of its own, which is replaced as a whole: a crash leaves the old or the new one.

    For one process. `AsyncCursorStore` and `CursorStore` say what a store of one's own needs, for example
    in the transaction of what the event changes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def read(self) -> str | None:
        """None if there is no such file yet."""
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, cursor: str) -> None:
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(cursor)
            os.replace(name, self._path)
        except BaseException:
            os.unlink(name)
            raise
