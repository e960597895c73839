"""Rooms that are upgraded: the chat goes on in the room that replaces them."""

import pytest

from msgsvc_core.channels import (
    Channel,
    ChatMoved,
    MessageReceived,
    OutgoingMessage,
    Reason,
    Started,
)
from msgsvc_devkit.platforms.matrix import FakeMatrix, Person
from msgsvc_matrix.upgrades import INVITATION_MS

from .conftest import ChannelFactory, Reader, failure_of

HELLO = OutgoingMessage("Hello")


async def open_chat(person: Person, reader: Reader) -> None:
    await person.start()
    await reader.take()


async def test_the_invitation_of_an_upgrade_is_accepted_and_moves_the_chat(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    old = await ann.upgrade()
    await ann.write("Still there?")
    invited = await reader.take()
    moved, received = await reader.take()

    assert invited == []
    assert isinstance(moved, ChatMoved)
    assert (moved.chat_id, moved.new_chat_id) == (old.room_id, ann.chat_id)
    assert moved.user.user_id == ann.user_id
    assert isinstance(received, MessageReceived)
    assert (received.chat_id, received.text) == (ann.chat_id, "Still there?")


async def test_a_homeserver_that_accepts_invitations_moves_the_chat_too(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    old = await ann.upgrade()
    homeserver.member(ann.room, homeserver.bot_id, "join", homeserver.bot_id)
    (moved,) = await reader.take()

    assert isinstance(moved, ChatMoved)
    assert moved.chat_id == old.room_id


async def test_leaving_the_old_room_is_no_farewell(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    old = await ann.upgrade()
    homeserver.member(old, ann.user_id, "leave", ann.user_id)
    updates = [*await reader.take(), *await reader.take()]

    assert [type(one) for one in updates] == [ChatMoved]


async def test_removing_the_bot_from_the_old_room_is_no_block(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    old = await ann.upgrade()
    await reader.take()
    homeserver.member(old, homeserver.bot_id, "leave", ann.user_id)
    updates = await reader.take()

    assert [type(one) for one in updates] == [ChatMoved]


async def test_a_claim_to_replace_another_persons_chat_is_declined(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    eve = homeserver.person("Eve")
    before = {"room_id": ann.chat_id, "event_id": ann.room.events[-1].event_id}
    room = homeserver.new_room(eve, direct=False, predecessor=before)
    homeserver.invite(room, eve.user_id)
    await reader.take()

    assert room.membership(homeserver.bot_id) == "leave"


async def test_a_direct_chat_that_claims_another_persons_chat_only_starts(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    eve = homeserver.person("Eve")
    before = {"room_id": ann.chat_id, "event_id": ann.room.events[-1].event_id}
    room = homeserver.new_room(eve, direct=True, predecessor=before)
    homeserver.invite(room, eve.user_id)
    homeserver.auto_join(room)
    (started,) = await reader.take()

    assert isinstance(started, Started)
    assert started.chat_id == room.room_id


async def test_a_message_to_the_old_room_names_the_new_one(
    homeserver: FakeMatrix, channel: Channel, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    first = await ann.upgrade()
    homeserver.member(ann.room, homeserver.bot_id, "join", homeserver.bot_id)
    await ann.upgrade()
    error = await failure_of(channel.send(first.room_id, HELLO))
    await channel.send(error.moved_to or "", HELLO)

    assert error.moved_to == ann.chat_id
    assert [one.text for one in ann.messages] == ["Hello"]
    assert not any(event.kind == "m.room.message" for event in first.events)


@pytest.mark.parametrize("closed", [False, True])
async def test_messages_wait_for_the_invitation_to_the_new_room(
    homeserver: FakeMatrix, channel: Channel, ann: Person, reader: Reader, *, closed: bool
) -> None:
    await open_chat(ann, reader)
    old = await ann.upgrade(invites=False, closed=closed)
    waiting = await failure_of(channel.send(old.room_id, HELLO))
    await ann.invite()
    moved = await failure_of(channel.send(old.room_id, HELLO))

    assert (waiting.reason, waiting.scope) == (Reason.RATE_LIMITED, "chat")
    assert waiting.only_waits
    assert moved.moved_to == ann.chat_id


async def test_an_hour_after_an_upgrade_without_an_invitation_the_chat_is_gone(
    homeserver: FakeMatrix, channel: Channel, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    old = await ann.upgrade(invites=False)
    tombstone = old.state_event("m.room.tombstone")
    assert tombstone is not None
    tombstone.at_ms -= INVITATION_MS
    error = await failure_of(channel.send(old.room_id, HELLO))

    assert (error.reason, error.moved_to) == (Reason.CHAT_NOT_FOUND, None)


async def test_a_room_that_was_closed_without_a_replacement_is_no_move(
    homeserver: FakeMatrix, channel: Channel, ann: Person, reader: Reader
) -> None:
    await open_chat(ann, reader)
    homeserver.add(ann.room, "m.room.tombstone", ann.user_id, {"body": "Closed"}, state_key="")
    await channel.send(ann.chat_id, HELLO)

    assert [one.text for one in ann.messages] == ["Hello"]


async def test_other_servers_rooms_are_not_entered_by_an_upgrade(
    homeserver: FakeMatrix, make_channel: ChannelFactory, reader: Reader
) -> None:
    bob = homeserver.person("Bob", server="elsewhere.example")
    reader.channel = make_channel(allowed_homeservers=["fake.example"])
    await bob.start()
    await reader.take()
    await bob.upgrade()
    await reader.take()

    assert bob.room.membership(homeserver.bot_id) == "leave"
