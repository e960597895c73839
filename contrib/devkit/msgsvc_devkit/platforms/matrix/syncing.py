"""Answers of `/sync`: what the bot sees of its rooms after a position in the stream of events."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgsvc_devkit.platforms.matrix.checks import passes
from msgsvc_devkit.platforms.matrix.refusals import wrong_parameter
from msgsvc_devkit.platforms.matrix.rooms import Event, MatrixRoom

#: State that is sent with an invitation ("Stripped state").
STRIPPED = frozenset({"m.room.create", "m.room.encryption"})


def token_of(position: int) -> str:
    return f"s{position}"


def position_of(token: str) -> int:
    """Raises `Refused`."""
    if not re.fullmatch(r"s\d{1,12}", token):
        raise wrong_parameter(f"Invalid stream token {token!r}")
    return int(token[1:])


def sync_answer(
    rooms: Iterable[MatrixRoom], bot_id: str, since: int | None, wanted: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """The rooms with news, by what the bot is to them."""
    answer: dict[str, dict[str, Any]] = {"join": {}, "invite": {}, "leave": {}}
    room_filter = wanted.get("room", {})
    for room in rooms:
        mine = room.member_event(bot_id)
        if mine is None:
            continue
        membership, is_news = room.membership(bot_id), since is None or mine.position > since
        if membership == "join":
            if found := _joined(room, bot_id, since, room_filter):
                answer["join"][room.room_id] = found
        elif membership == "invite" and is_news:
            answer["invite"][room.room_id] = {"invite_state": {"events": _stripped(room, bot_id)}}
        elif is_news and (since is not None or room_filter.get("include_leave")):
            seen = [event for event in room.events if event.position <= mine.position]
            answer["leave"][room.room_id] = _timeline(seen, since, room_filter)
    return answer


def _joined(
    room: MatrixRoom, bot_id: str, since: int | None, room_filter: Mapping[str, Any]
) -> dict[str, Any] | None:
    joined = max(
        event.position
        for event in room.events
        if event.kind == "m.room.member"
        and event.state_key == bot_id
        and event.content["membership"] == "join"
        and (event.previous or {}).get("membership") != "join"
    )
    # A room that is new to the bot comes with its history.
    after = since if since is not None and joined <= since else None
    ephemeral = _receipts(room, bot_id, after, room_filter.get("ephemeral", {}))
    found = _timeline(room.events, after, room_filter)
    if after is not None and not found["timeline"]["events"] and not ephemeral:
        return None
    shown = {event["event_id"] for event in found["timeline"]["events"]}
    state = [
        event.to_wire()
        for event in room.events
        if event.state_key is not None
        and event.event_id not in shown
        and passes(event.kind, room_filter.get("state", {}))
        and (after is None or event.position > after)
    ]
    return {**found, "state": {"events": state}, "ephemeral": {"events": ephemeral}}


def _receipts(
    room: MatrixRoom, bot_id: str, after: int | None, wanted: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The receipts that are new, in one event. Private ones are shown to their owner alone."""
    content: dict[str, Any] = {}
    for receipt in room.receipts.values():
        is_hidden = receipt.kind == "m.read.private" and receipt.user_id != bot_id
        if is_hidden or (after is not None and receipt.position <= after):
            continue
        data: dict[str, Any] = {"ts": receipt.at_ms}
        if receipt.thread_id is not None:
            data["thread_id"] = receipt.thread_id
        kinds = content.setdefault(receipt.event_id, {})
        kinds.setdefault(receipt.kind, {})[receipt.user_id] = data
    if not content or not passes("m.receipt", wanted):
        return []
    return [{"type": "m.receipt", "content": content}]


def _timeline(
    events: Iterable[Event], after: int | None, room_filter: Mapping[str, Any]
) -> dict[str, Any]:
    wanted = room_filter.get("timeline", {})
    found = [
        event
        for event in events
        if (after is None or event.position > after) and passes(event.kind, wanted)
    ]
    taken = found[-wanted.get("limit", 10) :]
    timeline: dict[str, Any] = {
        "events": [event.to_wire() for event in taken],
        "limited": len(taken) < len(found),
    }
    if taken:
        timeline["prev_batch"] = token_of(taken[0].position - 1)
    return {"timeline": timeline}


def _stripped(room: MatrixRoom, bot_id: str) -> list[dict[str, Any]]:
    return [
        {
            "type": event.kind,
            "sender": event.sender,
            "state_key": event.state_key,
            "content": event.content,
        }
        for event in room.events
        if event.kind in STRIPPED or event is room.member_event(bot_id)
    ]
