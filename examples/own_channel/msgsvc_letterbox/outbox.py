"""The platform's side of sending: a file a message, and a list of who wants none."""

import json
import time
import uuid
from pathlib import Path
from typing import Any


class BlockedBot(Exception):
    """The person wants no letters from this bot."""


class NoSuchLetter(Exception):
    """The message was never written, or is gone."""


class Outbox:
    """What a real platform does behind its API. Calls take the time of a disk, so threads make them.

    Every method raises `OSError` where the folder can't be used, and `BlockedBot`.
    """

    def __init__(self, folder: Path) -> None:
        self._letters = folder / "outbox"
        self._answers = folder / "answers"
        self._blocked = folder / "blocked.txt"

    def open(self) -> None:
        """Makes the folders."""
        self._letters.mkdir(parents=True, exist_ok=True)
        self._answers.mkdir(parents=True, exist_ok=True)

    def put(self, chat_id: str, message: dict[str, Any]) -> str:
        """Writes a letter; returns its name, which sorts by time."""
        self._check_open(chat_id)
        name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}"
        self._write(name, chat_id, message)
        return name

    def replace(self, chat_id: str, name: str, message: dict[str, Any]) -> None:
        """Writes another letter in the place of one. Raises `NoSuchLetter`."""
        self._check_open(chat_id)
        if not self._letter(name).exists():
            raise NoSuchLetter(name)
        self._write(name, chat_id, message)

    def remove(self, name: str) -> None:
        """Takes a letter away, if it is there."""
        self._letter(name).unlink(missing_ok=True)

    def answer(self, press: str, text: str) -> None:
        """Says something short about a pressed button."""
        self.open()
        (self._answers / f"{press}.txt").write_text(text, encoding="utf-8")

    def _write(self, name: str, chat_id: str, message: dict[str, Any]) -> None:
        self.open()
        text = json.dumps({"to": chat_id, **message}, ensure_ascii=False)
        self._letter(name).write_text(text, encoding="utf-8")

    def _letter(self, name: str) -> Path:
        return self._letters / f"{name}.json"

    def _check_open(self, chat_id: str) -> None:
        if self._blocked.exists() and chat_id in self._blocked.read_text("utf-8").splitlines():
            raise BlockedBot(chat_id)
