"""Rooms that were replaced by new ones ("Room Upgrades" in the specification)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.clock import HOUR_MS, Clock
from msgsvc_core.kernel.storable_text import storable
from msgsvc_matrix.client import MatrixClient
from msgsvc_matrix.failures import MatrixError
from msgsvc_matrix.rooms import Rooms

#: Replacements of replacements that are followed before one message.
MAX_STEPS = 10

#: Milliseconds after an upgrade during which messages wait for the bot's invitation to the new room, and
#: seconds between two tries.
INVITATION_MS, INVITATION_RETRY_S = HOUR_MS, 15.0


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The end of a room: its replacement, the server of the user who upgraded it, and when."""

    replacement: str
    server: str
    at_ms: int


class Upgrades:
    """Follows a room to its replacement, and recognizes the replacement of a known chat."""

    def __init__(self, *, clock: Clock, client: MatrixClient, rooms: Rooms) -> None:
        self._clock = clock
        self._client = client
        self._rooms = rooms

    async def check_current(self, room_id: str) -> None:
        """Raises `DeliveryError` with `moved_to` if a room was replaced by one that the bot is in, or can
        join; one that waits as long as the invitation may still arrive."""
        current = room_id
        for _ in range(MAX_STEPS):
            tombstone = await self._tombstone(current)
            if tombstone is None:
                break
            await self._enter(tombstone)
            current = tombstone.replacement
        if current != room_id:
            raise DeliveryError(
                Reason.CHAT_NOT_FOUND, "the room was upgraded to another", moved_to=current
            )

    async def is_replaced(self, room_id: str) -> bool:
        return await self._tombstone(room_id) is not None

    async def is_invitation(
        self, room_id: str, stripped: Sequence[Mapping[str, Any]], sender: str
    ) -> bool:
        """Whether an invitation is to the replacement of a direct chat. `stripped` is the state that came
        with it, which anybody can make up: the chat has to confirm it, or be with the sender."""
        for event in stripped:
            if event.get("type") == "m.room.create":
                return await self._is_replaced_by(_predecessor(event), room_id, sender) is not None
        return False

    async def previous_chat(self, room_id: str, person: str) -> str | None:
        """The direct chat that a room continues; None if there is none, or it is not the bot's."""
        try:
            create = {"content": await self._client.state(room_id, "m.room.create")}
        except MatrixError as error:
            if not (error.forbidden or error.not_found):
                raise
            return None
        return await self._is_replaced_by(_predecessor(create), room_id, person)

    async def _is_replaced_by(self, old: str | None, room_id: str, person: str) -> str | None:
        """`old` if that room names its replacement, or is a chat with the same person."""
        if old is None or old == room_id:
            return None
        tombstone = await self._tombstone(old)
        if tombstone is not None and tombstone.replacement == room_id:
            return old
        try:
            members = await self._rooms.members(old)
        except MatrixError as error:
            if not (error.forbidden or error.not_found):
                raise
            return None
        return old if members.other_than(await self._client.user_id()) == person else None

    async def _enter(self, tombstone: Tombstone) -> None:
        """Joins a replacement; there is no change if the bot is in it."""
        try:
            await self._client.join(tombstone.replacement, via=tombstone.server)
        except MatrixError as error:
            if not (error.forbidden or error.not_found):
                raise
        else:
            return
        text = "the room was upgraded, and the bot is not invited to the new one"
        if self._clock.now_ms() < tombstone.at_ms + INVITATION_MS:
            raise DeliveryError(Reason.RATE_LIMITED, text, INVITATION_RETRY_S, scope="chat")
        raise DeliveryError(Reason.CHAT_NOT_FOUND, text)

    async def _tombstone(self, room_id: str) -> Tombstone | None:
        """The end of a room; None if it goes on, or the bot can't see it."""
        try:
            event = await self._client.state(room_id, "m.room.tombstone", full=True)
        except MatrixError as error:
            if not (error.forbidden or error.not_found):
                raise
            return None
        content, sender, at_ms = (
            event.get(name) for name in ("content", "sender", "origin_server_ts")
        )
        replacement = content.get("replacement_room") if isinstance(content, dict) else None
        if not isinstance(replacement, str) or not replacement.startswith("!"):
            return None  # an empty one closes a room without a replacement
        server = sender.partition(":")[2] if isinstance(sender, str) else ""
        return Tombstone(storable(replacement), server, at_ms if type(at_ms) is int else 0)


def _predecessor(create: Mapping[str, Any]) -> str | None:
    """The room that a new one replaces, by its `m.room.create`."""
    content = create.get("content")
    before = content.get("predecessor") if isinstance(content, dict) else None
    room_id = before.get("room_id") if isinstance(before, dict) else None
    return storable(room_id) if isinstance(room_id, str) and room_id.startswith("!") else None
