"""Corpora of what platforms send: a Markdown table whose rows are an item and what becomes of it.

| item | as it arrives | becomes | because |
| --- | --- | --- | --- |
| a text | `{"text": "Hi"}` | taken: Hi | |

What becomes of an item is `taken: TEXT [FILE]`, `edit of REF: TEXT`, `press: DATA`, `start: PAYLOAD`, `stop`,
`unblocked`, `report: STATE REF`, `moved to CHAT`, several of them with `; ` between, `ignored` for what is
known and nobody has to read, or `skipped` for what can't be read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgsvc_core.channels import (
    Blocked,
    BotCreated,
    ButtonPressed,
    ChatMoved,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Unblocked,
    Unreadable,
    Update,
)
from msgsvc_core.channels.shelf.failed_updates import item_of, update_of

#: Events of the log, as warnings, by which a channel says that it could not read an item.
SKIPPED = frozenset({"update_skipped", "update_unreadable"})


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the table. `raw` is the code in its second column."""

    name: str
    raw: str
    becomes: str

    def __str__(self) -> str:
        return self.name


def read_corpus(path: Path) -> list[Item]:
    """The rows of the tables in a file."""
    rows = [line for line in path.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]
    found = [each for each in cells if each[0] not in {"item", "---"}]
    items = [Item(each[0], each[1].strip("`"), each[2].rstrip("|").strip()) for each in found]
    names = [item.name for item in items]
    assert len(names) == len(set(names)), "names of items are unique"
    return items


def outcome_of(updates: Iterable[Update], logs: Iterable[Mapping[str, Any]] = ()) -> str:
    """What became of an item, as the table says it, by its updates and what was logged meanwhile."""
    told = [_told(_kept(update)) for update in updates]
    if read := [each for each in told if each != "skipped"]:
        return "; ".join(read)
    warned = (log["event"] in SKIPPED and log["log_level"] == "warning" for log in logs)
    return "skipped" if told or any(warned) else "ignored"


def _kept(update: Update) -> Update:
    """The update as the service keeps it should its handler fail, and reads it again."""
    if isinstance(update, Unreadable):
        return update
    again = update_of(type(update).__name__, item_of(update, RuntimeError()).raw)
    assert again == update, f"{update} is read as {again} once it was kept"
    return again


def _told(update: Update) -> str:
    told = "skipped"
    match update:
        case MessageReceived():
            told = f"taken: {_content(update.text, update.files)}"
        case MessageEdited():
            told = f"edit of {update.message_ref}: {_content(update.text, update.files)}"
        case ButtonPressed():
            told = f"press: {update.data}"
        case Started():
            told = f"start: {update.payload}" if update.payload else "start"
        case Blocked():
            told = "stop"
        case Unblocked():
            told = "unblocked"
        case ChatMoved():
            told = f"moved to {update.new_chat_id}"
        case BotCreated():
            told = f"bot made: {update.username}"
        case DeliveryReported():
            told = f"report: {update.state} {update.message_ref}"
    return told.rstrip()


def _content(text: str, files: Iterable[ReceivedFile]) -> str:
    shown = text.replace("\r", "").replace("\n", "⏎").replace("|", "¦")
    return " ".join([*([shown] if shown else []), *(f"[{file.type}]" for file in files)])
