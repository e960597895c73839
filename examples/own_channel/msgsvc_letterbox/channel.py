"""One letterbox, as the core sees it: everything that a channel must be able to do."""

import asyncio
import json
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Polled,
    Reason,
    Update,
)
from msgsvc_letterbox.settings import LetterboxSettings
from msgsvc_letterbox.updates import UnreadableUpdate, read_update

if TYPE_CHECKING:
    from msgsvc_core.service import Service

log = structlog.get_logger(__name__)


class LetterboxChannel(Channel):
    """Writes one JSON line for each call, and takes updates from files."""

    #: The core refuses the rest before it calls us, so there is nothing to translate here.
    capabilities = Capabilities(formats=frozenset({"plain"}), media_types=frozenset())

    receiving = "poll"

    def __init__(
        self, _service: "Service", identity: ChannelIdentity, settings: LetterboxSettings
    ) -> None:
        super().__init__(identity)
        self._outbox = settings.folder / "outbox.jsonl"
        self._inbox = settings.folder / "inbox"
        self._poll_s = settings.poll_s

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        message_ref = uuid.uuid4().hex
        await self._write("send", chat_id=chat_id, ref=message_ref, message=message.to_payload())
        return message_ref

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await self._write("edit", chat_id=chat_id, ref=message_ref, message=message.to_payload())

    async def delete(self, chat_id: str, message_ref: str) -> None:
        await self._write("delete", chat_id=chat_id, ref=message_ref)

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        await self._write("answer_button", ref=button_ref, text=text)

    def deep_link(self, payload: str) -> str:
        return f"letterbox:{self.name}?start={payload}"

    async def check(self) -> ChannelHealth:
        try:
            await asyncio.to_thread(_append, self._outbox, "")
        except OSError as error:
            return ChannelHealth(ok=False, detail=str(error))
        return ChannelHealth(ok=True, detail=str(self._outbox), profile=BotProfile(self.name))

    async def _write(self, call: str, **fields: Any) -> None:
        line = json.dumps({"call": call, **fields}, ensure_ascii=False) + "\n"
        try:
            await asyncio.to_thread(_append, self._outbox, line)
        except OSError as error:
            # Every failure has one of the seven reasons. This one makes the core try again later.
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(error)) from error

    # ---- in -------------------------------------------------------------------------------------

    async def poll_updates(self, cursor: str | None) -> Polled:
        """Takes the inbox's files, in the order of their names."""
        if cursor is not None:
            # Only now do we know that the core has these. Had we died before, they would be read again,
            # and the core, which knows an update's id, lets it have no second effect.
            await asyncio.to_thread(_remove, [self._inbox / name for name in cursor.split("/")])
        await asyncio.to_thread(self._inbox.mkdir, parents=True, exist_ok=True)
        while True:
            found = await asyncio.to_thread(lambda: sorted(self._inbox.glob("*.json"))[:100])
            read = [(path.name, await asyncio.to_thread(_read, path)) for path in found]
            taken = [(name, update) for name, update in read if update is not None]
            if taken:
                names, updates = zip(*taken, strict=True)
                return Polled(updates, cursor="/".join(names))
            await asyncio.sleep(self._poll_s)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _read(path: Path) -> Update | None:
    """The update in a file; one that can't be read is put aside, and never stops the bot."""
    try:
        return read_update(path.stem, path.read_bytes())
    except UnreadableUpdate as error:
        log.warning("update_unreadable", file=path.name, error=str(error))
        path.rename(path.with_suffix(".unreadable"))
        return None
