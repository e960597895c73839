"""Texts of the format `rich` as Telegram's rich messages.

The rules are those of the Bot API's "Rich message formatting options": decision 0016.
"""

from typing import Any

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.content.blocks import from_rich, size_of, to_rich

#: Bot API, "Rich message limits".
MAX_BLOCKS, MAX_LEVELS, MAX_COLUMNS = 500, 16, 20


def is_rich(message: OutgoingMessage) -> bool:
    """Whether it is sent as a rich message; a caption can't be one."""
    return message.format == "rich" and message.media is None


def rich_message(text: str) -> dict[str, Any]:
    """The Bot API's InputRichMessage."""
    return {"html": to_rich(from_rich(text))}


def problem_of_blocks(message: OutgoingMessage) -> str | None:
    if not is_rich(message):
        return None
    size = size_of(from_rich(message.text))
    if size.blocks > MAX_BLOCKS:
        return f"text: must have at most {MAX_BLOCKS} blocks on this channel"
    if size.levels > MAX_LEVELS:
        return f"text: must have at most {MAX_LEVELS} levels of blocks on this channel"
    if size.columns > MAX_COLUMNS:
        return f"text: a table must have at most {MAX_COLUMNS} columns on this channel"
    return None
