"""One letterbox, as the core sees it: everything that a channel must be able to do."""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath
from typing import IO, Any, TypeVar

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    DeliveryError,
    OutgoingMessage,
    Polled,
    Reason,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_letterbox.outbox import BlockedBot, NoSuchLetter, Outbox
from msgsvc_letterbox.settings import LetterboxSettings
from msgsvc_letterbox.updates import UnreadableUpdate, read_update

T = TypeVar("T")


class LetterboxChannel(Channel):
    """Writes a file for each message, and takes updates from files."""

    #: The core refuses the rest before it calls us, so there is nothing to translate here.
    capabilities = Capabilities(
        formats=frozenset({"plain"}),
        media_types=frozenset(),
        receives_files=True,
        tells_replies=True,
    )

    receiving = "poll"

    def __init__(
        self, _context: ChannelContext, identity: ChannelIdentity, settings: LetterboxSettings
    ) -> None:
        super().__init__(identity)
        self._outbox = Outbox(settings.folder)
        self._inbox = settings.folder / "inbox"
        self._files = settings.folder / "files"
        self._poll_s = settings.poll_s

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        return await self._ask(self._outbox.put, chat_id, message.to_payload())

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        await self._ask(self._outbox.replace, chat_id, message_ref, message.to_payload())

    async def delete(self, chat_id: str, message_ref: str) -> None:
        await self._ask(self._outbox.remove, message_ref)

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        await self._ask(self._outbox.answer, button_ref, text or "")

    def deep_link(self, payload: str) -> str:
        return f"letterbox:{self.name}?start={payload}"

    async def check(self) -> ChannelHealth:
        try:
            await self._ask(self._outbox.open)
        except DeliveryError as error:
            return ChannelHealth(ok=False, detail=error.text)
        return ChannelHealth(ok=True, detail=str(self._inbox), profile=BotProfile(self.name))

    async def _ask(self, call: Callable[..., T], *arguments: Any) -> T:
        """One call of the platform. Whatever goes wrong in it becomes one of the seven reasons."""
        try:
            return await asyncio.to_thread(call, *arguments)
        except BlockedBot as error:
            # Unsubscribes the person.
            raise DeliveryError(Reason.USER_BLOCKED_BOT, str(error)) from None
        except NoSuchLetter as error:
            # Will never work, so it is not tried again.
            raise DeliveryError(Reason.INVALID_MESSAGE, str(error)) from None
        except OSError as error:
            # Makes the core try again later.
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(error)) from None

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
            taken = [(path.name, await asyncio.to_thread(_read, path)) for path in found]
            if taken:
                names, updates = zip(*taken, strict=True)
                return Polled(updates, cursor="/".join(names))
            await asyncio.sleep(self._poll_s)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        """An operator has a letter read again, e.g. after this channel has learned a new kind."""
        return [_update(item.update_id, item.raw)]

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        # The last part alone: who names a file must not name any other of this machine.
        path = self._files / PurePath(file_ref).name
        try:
            await asyncio.to_thread(_copy, path, into, max_bytes)
        except FileNotFoundError:
            raise DeliveryError(Reason.INVALID_MESSAGE, "there is no such file") from None
        except OSError as error:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(error)) from None


def _copy(path: Path, into: IO[bytes], max_bytes: int) -> None:
    if path.stat().st_size > max_bytes:
        raise DeliveryError(Reason.INVALID_MESSAGE, f"it is larger than {max_bytes} bytes")
    with path.open("rb") as file:
        shutil.copyfileobj(file, into)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _read(path: Path) -> Update:
    """The update in a file; one that can't be read goes to the channel's shelf, and never stops the bot."""
    return _update(path.stem, path.read_bytes())


def _update(update_id: str, raw: bytes) -> Update:
    try:
        return read_update(update_id, raw)
    except UnreadableUpdate as error:
        return Unreadable(
            update_id=update_id, raw=raw, reason=UnreadableReason.MALFORMED, detail=str(error)
        )
