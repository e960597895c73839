"""One letterbox, as the core sees it: everything that a channel must be able to do."""

import asyncio
import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from msgsvc_core.channels import (
    Capabilities,
    Channel,
    ChannelHealth,
    DeliveryError,
    OutgoingMessage,
    Reason,
    Receive,
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

    def __init__(self, _service: "Service", name: str, settings: LetterboxSettings) -> None:
        super().__init__(name)
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
        return ChannelHealth(ok=True, detail=str(self._outbox))

    async def _write(self, call: str, **fields: Any) -> None:
        line = json.dumps({"call": call, **fields}, ensure_ascii=False) + "\n"
        try:
            await asyncio.to_thread(_append, self._outbox, line)
        except OSError as error:
            # Every failure has one of the seven reasons. This one makes the core try again later.
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(error)) from error

    # ---- in -------------------------------------------------------------------------------------

    async def run(self, receive: Receive) -> None:
        """Takes the inbox's files by name, for as long as the service runs."""
        await asyncio.to_thread(self._inbox.mkdir, parents=True, exist_ok=True)
        while True:
            for path in await asyncio.to_thread(lambda: sorted(self._inbox.glob("*.json"))):
                if (update := await asyncio.to_thread(_read, path)) is not None:
                    await receive(update)
                    # Only now: if we die before, the file is read again, and the core, which knows
                    # the update's id, lets it have no second effect.
                    await asyncio.to_thread(path.unlink)
            await asyncio.sleep(self._poll_s)


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
