"""Where an event feed keeps how far it has come, and what it keeps."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path

#: Milliseconds that a look goes back over what was seen: an event gets its id before its transaction is
#: committed, so that it may become visible after a younger one.
OVERLAP_MS = 60_000

#: Ids remembered of that time, at most; they bound the size of a cursor to some 30 kB.
MAX_SEEN = 1_000


class Position:
    """How far a reader has come: the id up to which all is settled, and the ids seen behind it.

    As text it is a JSON object, the same in all clients: `{"after":"evt_1","newest_ms":0,"seen":["evt_2"]}`.
    """

    def __init__(
        self, after: str = "", newest_ms: int = 0, seen: dict[str, int] | None = None
    ) -> None:
        #: Behind this event the next look begins; empty: with the oldest.
        self.after = after
        #: When the youngest event that was seen occurred.
        self._newest_ms = newest_ms
        #: When each of the others occurred, by id.
        self._seen = seen or {}

    @classmethod
    def parse(cls, text: str) -> Position:
        """Raises ValueError if it is not what `str` made."""
        try:
            found = json.loads(text)
            newest_ms = int(found["newest_ms"])
            # Without a time for each, so that it is short: they are remembered a little longer than needed.
            return cls(str(found["after"]), newest_ms, dict.fromkeys(found["seen"], newest_ms))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no cursor: {error!r}") from error

    def __str__(self) -> str:
        fields = {"after": self.after, "newest_ms": self._newest_ms, "seen": sorted(self._seen)}
        return json.dumps(fields, separators=(",", ":"))

    def __contains__(self, event_id: str) -> bool:
        return event_id in self._seen

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, event_id: str, occurred_at: str) -> None:
        try:
            at_ms = int(
                datetime.fromisoformat(occurred_at.replace("Z", "+00:00")).timestamp() * 1000
            )
        except ValueError:
            at_ms = self._newest_ms
        self._newest_ms = max(self._newest_ms, at_ms)
        self._seen[event_id] = at_ms

    @property
    def is_within_overlap(self) -> bool:
        """Whether all that was seen occurred within a minute."""
        start_ms = self._newest_ms - OVERLAP_MS
        return all(at_ms >= start_ms for at_ms in self._seen.values())

    def begin_at_oldest(self) -> None:
        """For events that were read from the youngest on, where older ones are not to come."""
        self._forget(sorted(self._seen)[:1])

    def settle(self) -> None:
        """Forgets what occurred longer than a minute before the youngest, and what is too much."""
        ordered = sorted(self._seen)
        keep = ordered[-MAX_SEEN:]
        start_ms = self._newest_ms - OVERLAP_MS
        first = next((i for i, each in enumerate(keep) if self._seen[each] >= start_ms), len(keep))
        self._forget(ordered[: len(ordered) - len(keep) + first])

    def settle_all(self) -> None:
        """For a feed in which nothing new was seen for a minute."""
        self._forget(sorted(self._seen))

    def _forget(self, settled: list[str]) -> None:
        if settled:
            # One that came late may be below what was settled before.
            self.after = max(self.after, settled[-1])
            for event_id in settled:
                del self._seen[event_id]


class FileCursor:
    """The cursor in a file of its own, which is replaced as a whole: a crash, or a power cut, leaves the old
    or the new one. For one process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def __str__(self) -> str:
        return str(self._path)

    def read(self) -> str | None:
        """None if there is no such file yet."""
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, cursor: str) -> None:
        folder = self._path.parent
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(cursor)
                file.flush()
                # Before the name is given to it: else a power cut could leave an empty file of that name.
                os.fsync(file.fileno())
            os.replace(name, self._path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(name)
            raise
        if os.name == "posix":
            directory = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
