"""Notifications between processes, sent by a transaction after its commit.

Delivered directly in this process, and to others by PostgreSQL's NOTIFY; see
docs/decisions/0002-databases.md.
"""

from collections.abc import Callable
from functools import partial

from msgsvc_core.db.write_batch import call_all

#: The NOTIFY channel; the topic is part of the payload.
CHANNEL = "msgsvc"

#: Maximum bytes of a notification, including the topic: PostgreSQL requires fewer than 8000 (NOTIFY,
#: "payload").
MAX_BYTES = 7999

#: Called with the text of a notification. It must not block.
Callback = Callable[[str], None]


class Notifications:
    """Callbacks of this process, by topic."""

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    def __bool__(self) -> bool:
        return bool(self._callbacks)

    def listen(self, topic: str, callback: Callback) -> None:
        self._callbacks.setdefault(topic, []).append(callback)

    def notify(self, notice: str) -> None:
        """Calls the listeners of the notification's topic. Exceptions are logged."""
        topic, _, text = notice.partition(" ")
        call_all([partial(heard, text) for heard in self._callbacks.get(topic, ())])


def encode_notice(topic: str, text: str) -> str:
    """The encoded notification. Raises ValueError if PostgreSQL could not send it."""
    notice = f"{topic} {text}"
    if not topic or " " in topic:
        raise ValueError(f"{topic!r}: a topic is one word")
    if len(notice.encode()) > MAX_BYTES or "\0" in notice:
        raise ValueError(f"a notice of {topic!r} is too long, or holds a NUL")
    return notice
