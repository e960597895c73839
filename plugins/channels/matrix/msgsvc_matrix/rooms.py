"""Who is in a room: the person of a direct chat, or many."""

from collections import OrderedDict
from dataclasses import dataclass, field

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_matrix.client import MatrixClient
from msgsvc_matrix.failures import MatrixError

#: Rooms whose members are remembered, some hundred bytes each.
KEPT_ROOMS = 10_000

#: Members of a direct chat: a person, and the bot.
DIRECT = 2


@dataclass(frozen=True, slots=True)
class Members:
    """Who has joined a room. Names are those of direct chats only."""

    count: int
    names: dict[str, str | None] = field(default_factory=dict)

    @property
    def is_group(self) -> bool:
        return self.count > DIRECT

    def other_than(self, user_id: str) -> str | None:
        """The one other member; None if there is none, or several."""
        others = [one for one in self.names if one != user_id]
        return others[0] if len(others) == 1 else None


class Rooms:
    """The rooms that the bot has looked at."""

    def __init__(self, client: MatrixClient) -> None:
        self._client = client
        self._known: OrderedDict[str, Members] = OrderedDict()

    async def members(self, room_id: str, *, fresh: bool = False) -> Members:
        """Who is in a room, as far as is known; with `fresh` as the homeserver says now."""
        known = self._known.get(room_id)
        if known is not None and not fresh:
            return known
        self.forget(room_id)
        found = await self._client.members(room_id)
        # The names of a large group are of no use.
        members = Members(len(found), found if len(found) <= DIRECT else {})
        self._known[room_id] = members
        if len(self._known) > KEPT_ROOMS:
            self._known.popitem(last=False)
        return members

    def forget(self, room_id: str) -> None:
        """Someone has come or gone."""
        self._known.pop(room_id, None)

    def is_group(self, room_id: str) -> bool:
        """Whether the room is known to be a group."""
        known = self._known.get(room_id)
        return known is not None and known.is_group

    async def check_reachable(self, room_id: str) -> None:
        """Raises `DeliveryError` for a chat in which nobody would read a message.

        A homeserver takes messages into a room that everyone else has left.
        """
        if self.is_group(room_id):
            return
        try:
            members = await self.members(room_id, fresh=True)
        except MatrixError as error:
            if error.forbidden or error.not_found:
                raise await self._why_outside(room_id) from None
            raise
        if members.count < DIRECT:
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "nobody else is in the room any more")

    async def _why_outside(self, room_id: str) -> DeliveryError:
        """Whether the bot was removed from a room, or was never in it."""
        outside = DeliveryError(Reason.CHAT_NOT_FOUND, "the bot is not in the room")
        me = await self._client.user_id()
        try:
            event = await self._client.membership(room_id, me)
        except MatrixError as error:
            return outside if error.forbidden or error.not_found else error
        content = event.get("content")
        membership = content.get("membership") if isinstance(content, dict) else None
        if membership in {"leave", "ban"} and event.get("sender") != me:
            return DeliveryError(Reason.USER_BLOCKED_BOT, "the bot was removed from the room")
        return outside
