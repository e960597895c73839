"""Reads `/sync`: what happened in the bot's rooms since a cursor, and invitations."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import structlog

from msgsvc_core.channels import (
    Blocked,
    ChannelUser,
    ChatMoved,
    DeliveryError,
    Polled,
    Reason,
    Started,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.updates import NOBODY
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.kernel.json import read_json, to_json
from msgsvc_matrix.client import MatrixClient
from msgsvc_matrix.failures import MatrixError
from msgsvc_matrix.rooms import Members, Rooms
from msgsvc_matrix.settings import MatrixSettings
from msgsvc_matrix.texts import OwnTexts
from msgsvc_matrix.updates import (
    EVENT_TYPES,
    InvalidEvent,
    membership_of,
    read_event,
    read_receipts,
    report_of,
    text_in,
    user_of,
)
from msgsvc_matrix.upgrades import Upgrades

#: Seconds that the homeserver waits for news, and while an invitation is to be accepted again.
POLL_S, RETRY_S = 25.0, 5.0

#: Events of one room in an answer; what is left between two answers is read page by page.
TIMELINE, FIRST_TIMELINE = 50, 10
GAP_PAGE = 100

#: Pages of a gap: a person can't write 100,000 messages while the bot is away. A server that never ends its
#: pages is not followed for ever.
GAP_PAGES = 1_000

#: Age in milliseconds of events that a bot without a cursor still takes; older ones are history. The core
#: remembers for longer than that which it has processed.
HISTORY_MS = DAY_MS

#: Invitations that are accepted between two answers, and tries of each.
JOINS_PER_POLL, JOIN_TRIES = 10, 5

_NOTHING = {"not_types": ["*"], "limit": 0}
_EVENTS = {"types": list(EVENT_TYPES)}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the bot has read to, and invitations still to accept, with the number of tries."""

    since: str | None = None
    invites: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str | None) -> "Cursor":
        found = read_json(text.encode()) if text else {}
        return cls(found.get("since"), found.get("invites", {}))

    def __str__(self) -> str:
        return to_json({"since": self.since, "invites": dict(self.invites)})


class SyncReader:
    """Turns answers of `/sync` into updates, and answers invitations."""

    def __init__(
        self,
        *,
        channel: str,
        clock: Clock,
        client: MatrixClient,
        rooms: Rooms,
        upgrades: Upgrades,
        settings: MatrixSettings,
        texts: Callable[[], OwnTexts],
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._client = client
        self._rooms = rooms
        self._upgrades = upgrades
        self._settings = settings
        self._texts = texts

    async def poll(self, cursor: str | None) -> Polled:
        """The updates after a cursor. See `Channel.poll_updates`."""
        at, me = Cursor.read(cursor), await self._client.user_id()
        wait_s = RETRY_S if at.invites else POLL_S
        again = False
        try:
            answer = await self._client.sync(at.since, _filter(first=at.since is None), wait_s)
        except MatrixError as error:
            if at.since is None or error.status != HTTPStatus.BAD_REQUEST:
                raise
            # The server was restored or replaced, and will never take this cursor.
            log.error("cursor_refused", channel=self._channel, error=error.text)
            at, again = replace(at, since=None), True
            answer = await self._client.sync(None, _filter(first=True), wait_s)
        since, rooms = answer.get("next_batch"), _object(answer, "rooms")
        if not isinstance(since, str) or not since:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "the answer has no next_batch")
        updates: list[Update] = []
        for room_id, room in _rooms(rooms, "join"):
            updates += await self._joined(room_id, room, at.since, me, again=again)
            updates += await self._receipts(room_id, room, at.since, me)
        for room_id, room in _rooms(rooms, "leave"):
            self._rooms.forget(room_id)
            updates += await self._removed(room_id, room, me)
        invites = dict(at.invites)
        for room_id, room in _rooms(rooms, "invite"):
            if await self._is_welcome(room_id, room, me):
                invites[room_id] = 0
        return Polled(tuple(updates), str(Cursor(since, await self._accept(invites))))

    # ---- invitations ----------------------------------------------------------------------------

    async def _is_welcome(self, room_id: str, room: Mapping[str, Any], me: str) -> bool:
        """Whether the bot accepts an invitation. It declines those of groups, and of other servers.

        An invitation to the room that replaces a direct chat does not say `is_direct`.
        """
        stripped = _events(_object(room, "invite_state"))
        for event in stripped:
            if event.get("type") != "m.room.member" or event.get("state_key") != me:
                continue
            content, sender = event.get("content"), event.get("sender")
            if not isinstance(content, dict) or not isinstance(sender, str):
                continue
            if not self._settings.allows(sender):
                await self._decline(room_id, self._texts().other_server)
                return False
            is_direct = content.get("is_direct") is True
            if not is_direct and not await self._upgrades.is_invitation(room_id, stripped, sender):
                await self._decline(room_id, self._texts().direct_only)
                return False
            return True
        log.warning("invitation_skipped", channel=self._channel, error="it is of nobody")
        return False

    async def _decline(self, room_id: str, reason: str) -> None:
        log.info("invitation_declined", channel=self._channel, chat_id=room_id)
        await self._quietly_leave(room_id, reason)

    async def _accept(self, invites: Mapping[str, int]) -> dict[str, int]:
        """Joins rooms; those left to try again. One that can't be joined must not stop the others."""
        left = dict(invites)
        for room_id, tries in list(invites.items())[:JOINS_PER_POLL]:
            del left[room_id]
            try:
                await self._client.join(room_id)
            except DeliveryError as error:
                if error.reason.retryable and tries + 1 < JOIN_TRIES:
                    left[room_id] = tries + 1
                log.warning(
                    "invitation_not_accepted",
                    channel=self._channel,
                    chat_id=room_id,
                    error=error.text,
                    attempts=tries + 1,
                )
        return left

    # ---- rooms ----------------------------------------------------------------------------------

    async def _joined(
        self, room_id: str, room: Mapping[str, Any], since: str | None, me: str, *, again: bool
    ) -> list[Update]:
        """What happened in a room that the bot is in. `again` says that its cursor was refused: then it is
        all of the last day, of which the core knows what it has processed."""
        timeline = _object(room, "timeline")
        events, limited = _events(timeline), timeline.get("limited") is True
        if again:
            if limited and events and self._is_new(events[0]):
                events = await self._gap(room_id, timeline.get("prev_batch"), None) + events
            events = [event for event in events if self._is_new(event)]
        elif since is None:
            events = self._recent(events, me)
        elif limited and _own_join(events, me) is None:
            events = await self._gap(room_id, timeline.get("prev_batch"), since) + events
        joined = _own_join(events, me)
        encrypted = [one for one in events if one.get("type") == "m.room.encryption"]
        if joined is not None and not again and (encrypted or _is_encrypted(room)):
            # A client that opens a chat with the bot takes this one as long as the bot is in it.
            await self._say_unreadable(room_id, joined)
            await self._quietly_leave(room_id, self._texts().encrypted)
            return []
        for event in encrypted:
            await self._say_unreadable(room_id, event)
        if joined is not None:
            events = _from_invitation(events, me)
        return await self._read(room_id, events, me)

    async def _read(
        self, room_id: str, events: Sequence[Mapping[str, Any]], me: str
    ) -> list[Update]:
        """The updates of events in their order; none of a group's."""
        news = [one for one in events if one.get("sender") != me or _is_own_join(one, me)]
        if not news:
            return []
        changed = any(one.get("type") == "m.room.member" for one in news)
        try:
            members = await self._rooms.members(room_id, fresh=changed)
        except MatrixError as error:
            if error.forbidden or error.not_found:
                return []  # the bot was removed meanwhile: the next answer tells
            raise
        if members.is_group:
            log.debug("group_skipped", channel=self._channel, chat_id=room_id)
            return []
        updates: list[Update] = []
        for event in news:
            update = self.update_of(event, room_id, members, me)
            if update is None:
                log.debug("update_skipped", channel=self._channel, kinds=str(event.get("type")))
            elif isinstance(update, Unreadable) or self._settings.allows(update.user.user_id):
                updates.append(update)
        return [await self._in_context(one) for one in updates if not await self._is_leftover(one)]

    async def _in_context(self, update: Update) -> Update:
        """A start in a room that continues an earlier chat is that chat's move."""
        if not isinstance(update, Started):
            return update
        old = await self._upgrades.previous_chat(update.chat_id, update.user.user_id)
        if old is None:
            return update
        log.info("chat_moved", channel=self._channel, chat_id=old, new_chat_id=update.chat_id)
        return ChatMoved(
            update_id=update.update_id,
            chat_id=old,
            user=update.user,
            new_chat_id=update.chat_id,
        )

    async def _is_leftover(self, update: Update) -> bool:
        """Whether somebody only leaves, or clears, a room that was replaced: the chat goes on elsewhere."""
        return isinstance(update, Blocked) and await self._upgrades.is_replaced(update.chat_id)

    def update_of(
        self, event: Mapping[str, Any], room_id: str, members: Members, me: str
    ) -> Update | None:
        """The update of an event in a direct chat; None if it is irrelevant."""
        if "redacted_because" in _object(event, "unsigned"):
            # Its sender has removed it, with its content.
            return None
        try:
            return read_event(event, room_id, members, me)
        except InvalidEvent as error:
            return unreadable(event, room_id, str(error))
        except Exception as error:
            # A fault of ours with one event must not stop the others.
            log.exception("update_failed", channel=self._channel)
            return Unreadable.failed(event, error, origin=room_id)

    async def read_again(self, event: Mapping[str, Any], room_id: str) -> Update | None:
        """The update of an event that could not be read when it came. Raises `DeliveryError`."""
        me = await self._client.user_id()
        members = await self._rooms.members(room_id)
        return None if members.is_group else self.update_of(event, room_id, members, me)

    async def _receipts(
        self, room_id: str, room: Mapping[str, Any], since: str | None, me: str
    ) -> list[Update]:
        """Up to where the person of a direct chat has read."""
        found = read_receipts(_events(_object(room, "ephemeral")), me)
        if since is None:
            # Each is looked up, and a homeserver keeps them for ever.
            new_ms = self._clock.now_ms() - HISTORY_MS
            found = [receipt for receipt in found if (receipt.at_ms or 0) >= new_ms]
        if not found:
            return []
        reports = []
        try:
            members = await self._rooms.members(room_id)
            person = None if members.is_group else members.other_than(me)
            for receipt in found:
                if receipt.user_id != person or not self._settings.allows(receipt.user_id):
                    continue
                event = await self._client.event(room_id, receipt.event_id)
                if report := report_of(receipt, event, room_id, members, me):
                    reports.append(report)
        except MatrixError as error:
            if not (error.forbidden or error.not_found):
                raise
            log.debug("receipt_skipped", channel=self._channel, chat_id=room_id)
        return list(reports)

    async def _removed(self, room_id: str, room: Mapping[str, Any], me: str) -> list[Update]:
        """That a person removed the bot from a room. It leaves rooms itself, too."""
        for event in reversed(_events(_object(room, "timeline"))):
            if event.get("type") != "m.room.member" or event.get("state_key") != me:
                continue
            now, before = membership_of(event)
            mine = event.get("sender") == me or not self._is_new(event)
            if now not in {"leave", "ban"} or before not in {"", "join"} or mine:
                return []
            try:
                user = user_of(text_in(event, "sender"))
                found = Blocked(update_id=text_in(event, "event_id"), chat_id=room_id, user=user)
            except InvalidEvent as error:
                return [unreadable(event, room_id, str(error))]
            return [] if await self._is_leftover(found) else [found]
        return []

    async def _gap(self, room_id: str, start: Any, since: str | None) -> list[Mapping[str, Any]]:
        """The events between two answers, or back to those that are history, in their order."""
        pages: list[list[Mapping[str, Any]]] = []
        try:
            while isinstance(start, str) and len(pages) < GAP_PAGES:
                page = await self._client.messages(room_id, start, since, _EVENTS, GAP_PAGE)
                pages.append(_events(page, "chunk"))
                if since is None and not all(map(self._is_new, pages[-1])):
                    break
                start = page.get("end") if page.get("end") != start else None
        except MatrixError as error:
            if not (error.forbidden or error.not_found):
                raise
            log.warning("events_lost", channel=self._channel, chat_id=room_id, error=error.text)
        return [event for page in reversed(pages) for event in reversed(page)]

    def _recent(self, events: Sequence[Mapping[str, Any]], me: str) -> list[Mapping[str, Any]]:
        """Without a cursor: what the bot has not answered yet, and is not history."""
        own = [at for at, event in enumerate(events) if event.get("sender") == me]
        if own and not _is_own_join(events[own[-1]], me):
            events = events[own[-1] + 1 :]
        return [event for event in events if self._is_new(event)]

    def _is_new(self, event: Mapping[str, Any]) -> bool:
        at_ms = event.get("origin_server_ts")
        return isinstance(at_ms, int) and at_ms >= self._clock.now_ms() - HISTORY_MS

    async def _say_unreadable(self, room_id: str, cause: Mapping[str, Any]) -> None:
        """Says once, for one event, that the bot can't read encrypted messages."""
        digest = hashlib.blake2b(str(cause.get("event_id")).encode(), digest_size=16).hexdigest()
        content = {"msgtype": "m.text", "body": self._texts().encrypted}
        try:
            await self._client.send(room_id, f"encrypted-{digest}", content)
        except DeliveryError as error:
            if error.reason.retryable:
                error.in_doubt = False
                raise
            log.warning("encryption_not_answered", channel=self._channel, error=error.text)
        log.info("chat_encrypted", channel=self._channel, chat_id=room_id)

    async def _quietly_leave(self, room_id: str, reason: str) -> None:
        try:
            await self._client.leave(room_id, reason)
        except DeliveryError as error:
            # The bot stays invited, or in a room of which it reads nothing.
            log.warning("room_not_left", channel=self._channel, chat_id=room_id, error=error.text)


def _filter(*, first: bool) -> dict[str, Any]:
    """Asks for what is read, and nothing else."""
    return {
        "presence": _NOTHING,
        "account_data": _NOTHING,
        "room": {
            "timeline": {**_EVENTS, "limit": FIRST_TIMELINE if first else TIMELINE},
            "state": {"types": ["m.room.encryption"]},
            "ephemeral": {"types": ["m.receipt"]},
            "account_data": _NOTHING,
            # A person may have removed the bot before it first asks.
            "include_leave": first,
        },
    }


def _from_invitation(events: Sequence[Mapping[str, Any]], me: str) -> list[Mapping[str, Any]]:
    """The events since the bot was invited into the room that it then joined, the join first.

    What people write between the two is for the bot; what was before is not.
    """
    at = max(number for number, event in enumerate(events) if _is_own_join(event, me))
    begin = at
    for number in range(at - 1, -1, -1):
        if _is_own_invitation(events[number], me):
            begin = number + 1
            break
    return [events[at], *events[begin:at], *events[at + 1 :]]


def _own_join(events: Sequence[Mapping[str, Any]], me: str) -> Mapping[str, Any] | None:
    return next((event for event in reversed(events) if _is_own_join(event, me)), None)


def _is_own_join(event: Mapping[str, Any], me: str) -> bool:
    if event.get("type") != "m.room.member" or event.get("state_key") != me:
        return False
    now, before = membership_of(event)
    return now == "join" and before != "join"


def _is_own_invitation(event: Mapping[str, Any], me: str) -> bool:
    mine = event.get("type") == "m.room.member" and event.get("state_key") == me
    return mine and membership_of(event)[0] == "invite"


def _is_encrypted(room: Mapping[str, Any]) -> bool:
    state = _events(_object(room, "state"))
    return any(event.get("type") == "m.room.encryption" for event in state)


def unreadable(event: Mapping[str, Any], room_id: str, why: str) -> Unreadable:
    """An event that can't be read, and its room, without which it can't be read again."""
    sender = event.get("sender")
    user = ChannelUser(sender, "") if isinstance(sender, str) else NOBODY
    return Unreadable.of(event, UnreadableReason.MALFORMED, why, user=user, origin=room_id)


def _rooms(rooms: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for room_id, room in _object(rooms, name).items():
        if isinstance(room, dict):
            yield room_id, room


def _events(holder: Mapping[str, Any], name: str = "events") -> list[Mapping[str, Any]]:
    found = holder.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = holder.get(name)
    return found if isinstance(found, dict) else {}
