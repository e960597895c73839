"""What people do in rooms, as updates."""

import io
import json
from dataclasses import replace

import pytest

from msgsvc_core.channels import (
    Blocked,
    Channel,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    OutgoingMessage,
    Started,
    Unblocked,
    Unreadable,
)
from msgsvc_core.channels.inbound import placeholders
from msgsvc_devkit.platforms.matrix import FakeMatrix, Person, Refused
from msgsvc_devkit.platforms.matrix.rooms import now_ms
from msgsvc_matrix import sync

from .conftest import ChannelFactory, Reader


async def test_an_invitation_is_accepted_and_what_was_written_with_it_follows_the_start(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    homeserver.accepts_invites = False
    await ann.start(first="start 4F7K2M9Q")
    before = await reader.take()
    started, received = await reader.take()

    assert before == []
    assert isinstance(started, Started)
    assert (started.chat_id, started.user.first_name) == (ann.chat_id, "Ann")
    assert isinstance(received, MessageReceived)
    assert received.text == "start 4F7K2M9Q"


async def test_an_invitation_that_can_not_be_accepted_now_is_kept_in_the_cursor(
    homeserver: FakeMatrix,
    ann: Person,
    reader: Reader,
    make_channel: ChannelFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sync, "RETRY_S", 0.1)
    homeserver.accepts_invites = False
    await ann.start()
    homeserver.faults.at("join", Refused(503, "M_UNKNOWN", "away"))
    await reader.take()
    kept = json.loads(reader.cursor or "")["invites"]
    # As if the process had died.
    reader.channel = make_channel()
    await ann.write("Hello?")
    await reader.take()
    updates = await reader.take()

    assert kept == {ann.chat_id: 1}
    assert [type(one) for one in updates] == [Started, MessageReceived]


async def test_an_invitation_that_is_refused_for_good_is_given_up(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    homeserver.accepts_invites = False
    await ann.start()
    homeserver.faults.at("join", Refused(403, "M_FORBIDDEN", "no"))
    await reader.take()

    assert json.loads(reader.cursor or "")["invites"] == {}


async def test_a_group_is_declined(homeserver: FakeMatrix, ann: Person, reader: Reader) -> None:
    await ann.start(direct=False)
    await reader.take()
    mine = ann.room.member_event(homeserver.bot_id)

    assert mine is not None
    assert mine.content["membership"] == "leave"
    assert "direct chats" in mine.content["reason"]


async def test_a_room_that_becomes_a_group_is_ignored(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    eve = homeserver.person("Eve")
    await ann.bring(eve)
    await eve.write("yes")
    await ann.write("yes")

    assert await reader.take() == []
    assert reader.channel.is_group(ann.chat_id)


@pytest.mark.parametrize("allowed", [(), ("fake.example",), ("other.example", "FAKE.example")])
async def test_users_of_allowed_servers_are_taken(
    make_channel: ChannelFactory, ann: Person, allowed: tuple[str, ...]
) -> None:
    reader = Reader(make_channel(allowed_homeservers=allowed))
    await ann.start()

    assert [type(one) for one in await reader.take()] == [Started]


async def test_users_of_other_servers_are_declined_and_not_heard(
    homeserver: FakeMatrix, make_channel: ChannelFactory
) -> None:
    reader = Reader(make_channel(allowed_homeservers=["fake.example"]))
    eve = homeserver.person("Eve", server="evil.example")
    homeserver.accepts_invites = False
    await eve.start()
    declined = await reader.take()
    membership = eve.room.membership(homeserver.bot_id)
    homeserver.accepts_invites = True
    await eve.start()
    await eve.write("yes")

    assert (declined, membership) == ([], "leave")
    assert await reader.take() == []


async def test_history_is_not_taken_without_a_cursor(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await ann.write("long ago")
    for event in ann.room.events:
        event.at_ms = now_ms() - 2 * 24 * 3600 * 1000
    await ann.write("now")

    assert [getattr(one, "text", "") for one in await reader.take()] == ["now"]


async def test_what_the_bot_has_answered_is_not_taken_without_a_cursor(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await ann.write("asked")
    homeserver.add(
        ann.room, "m.room.message", homeserver.bot_id, {"msgtype": "m.text", "body": "answered"}
    )
    await ann.write("asked again")

    assert [getattr(one, "text", "") for one in await reader.take()] == ["asked again"]


async def test_a_gap_is_read_back_page_by_page(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    texts = [f"text {number}" for number in range(270)]
    for text in texts:
        await ann.write(text)

    assert [getattr(one, "text", "") for one in await reader.take()] == texts
    assert len(homeserver.calls_of("messages")) == 3


async def test_a_gap_that_can_not_be_read_now_is_read_by_the_next_poll(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    for number in range(80):
        await ann.write(f"text {number}")
    homeserver.faults.at("messages", Refused(503, "M_UNKNOWN", "away"))
    with pytest.raises(Exception, match="platform_unavailable"):
        await reader.take()

    assert len(await reader.take()) == 80


async def test_a_person_who_leaves_has_blocked_and_who_comes_back_unblocked(
    ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    await ann.leave()
    [left] = await reader.take()
    await ann.rejoin()
    [back] = await reader.take()

    assert (type(left), type(back)) == (Blocked, Unblocked)
    assert left.user.user_id == back.user.user_id == ann.user_id


@pytest.mark.parametrize("how", ["kick", "ban"])
async def test_a_bot_that_is_removed_is_blocked(ann: Person, reader: Reader, how: str) -> None:
    await ann.start()
    await reader.take()
    await getattr(ann, how)()
    [blocked] = await reader.take()

    assert isinstance(blocked, Blocked)
    assert (blocked.chat_id, blocked.user.user_id) == (ann.chat_id, ann.user_id)


async def test_an_encrypted_chat_is_told_so_once_and_left(
    homeserver: FakeMatrix, ann: Person, reader: Reader, make_channel: ChannelFactory
) -> None:
    await ann.start(encrypted=True)
    updates = await reader.take()
    texts = [message.text for message in ann.messages]
    # As if the process had died before it kept the cursor.
    await Reader(make_channel()).take()

    assert updates == []
    assert texts == [
        "I can't read encrypted messages. Please start another chat with me, without encryption."
    ]
    assert [message.text for message in ann.messages] == texts
    assert ann.room.membership(homeserver.bot_id) == "leave"


async def test_a_chat_that_is_encrypted_later_is_told_so_once_and_kept(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    before, room = reader.cursor, ann.room
    await ann.encrypt()
    await reader.take()
    homeserver.add(room, "m.room.encrypted", ann.user_id, {"ciphertext": "abc"})
    reader.cursor = before
    await reader.take()

    assert len(ann.messages) == 1
    assert room.membership(homeserver.bot_id) == "join"


async def test_notices_and_the_bots_own_messages_are_not_taken(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    await ann.write("I am a bot too", "m.notice")
    homeserver.add(
        ann.room, "m.room.message", homeserver.bot_id, {"msgtype": "m.text", "body": "mine"}
    )
    await ann.write("verify me", "m.key.verification.request")
    await ann.write("waves", "m.emote")
    # A kind that is not known has a text for clients that don't know it.
    await ann.write("Landed", "org.example.moon")

    assert [getattr(one, "text", "") for one in await reader.take()] == ["waves", "Landed"]


async def test_a_message_that_is_taken_back_is_edited_to_nothing(
    ann: Person, reader: Reader
) -> None:
    await ann.start()
    written = await ann.write("My password is 1234")
    await reader.take()
    await ann.redact()
    [edited] = await reader.take()

    assert isinstance(edited, MessageEdited)
    assert (edited.message_ref, edited.text, edited.files) == (written, "", ())


async def test_the_quotation_of_older_clients_is_no_part_of_a_reply(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    homeserver.add(
        ann.room,
        "m.room.message",
        ann.user_id,
        {
            "msgtype": "m.text",
            "body": "> <@shop_bot:fake.example> Coming?\n> Really?\n\n> 2 people",
            "m.relates_to": {"m.in_reply_to": {"event_id": "$asked"}},
        },
    )
    [received] = await reader.take()

    assert isinstance(received, MessageReceived)
    assert (received.text, received.reply_to) == ("> 2 people", "$asked")


async def test_a_sticker_is_a_picture_without_a_text(ann: Person, reader: Reader) -> None:
    await ann.start()
    await reader.take()
    await ann.send_file("m.sticker", b"png", "a cat", mime_type="image/png")
    [received] = await reader.take()

    assert isinstance(received, MessageReceived)
    assert (received.text, received.files[0].type) == ("", "image")


async def test_a_download_that_is_redirected_takes_the_token_nowhere(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await ann.send_file("m.file", b"%PDF", "d.pdf")
    _, received = await reader.take()
    assert isinstance(received, MessageReceived)
    homeserver.redirects_to = f"{homeserver.url}/cdn"
    into = io.BytesIO()
    await reader.channel.fetch_file(received.files[0].file_ref, into, 100)

    assert into.getvalue() == b"%PDF"


async def test_a_broken_event_stops_nothing(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    for content in (
        {},
        {"msgtype": "m.text", "body": None},
        {"msgtype": "m.image", "body": "x", "url": "https://evil.example"},
        {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.replace"}},
        {"msgtype": ["m.text"], "body": "x"},
        {"msgtype": "m.text", "body": "\0\ud83d", "m.relates_to": 7},
    ):
        homeserver.add(ann.room, "m.room.message", ann.user_id, content)
    await ann.write("after it")

    updates = await reader.take()
    odd = [one for one in updates if isinstance(one, Unreadable)]
    texts = [one.text for one in updates if isinstance(one, MessageReceived)]

    assert texts == [placeholders.unknown("m.image"), "\ufffd\ufffd", "after it"]
    assert {(one.reason, one.user.user_id, one.origin) for one in odd} == {
        ("malformed", ann.user_id, ann.room.room_id)
    }
    for one in odd:
        [still] = await reader.channel.take_anyway(one)
        assert isinstance(still, Unreadable)
        assert (still.detail, still.update_id) == (one.detail, one.update_id)


async def test_a_message_that_was_removed_before_it_was_read_is_not_kept(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    sent = homeserver.add(
        ann.room, "m.room.message", ann.user_id, {"msgtype": "m.text", "body": "oh"}
    )
    homeserver.redact(ann.room, sent.event_id, ann.user_id)
    await ann.write("after it")
    updates = await reader.take()

    assert not [one for one in updates if isinstance(one, Unreadable)]
    assert isinstance(updates[-1], MessageReceived)


async def test_a_refused_cursor_begins_anew_and_loses_nothing_of_the_last_day(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    """A homeserver that was restored does not know it. The core drops what it has processed before."""
    await ann.start()
    await ann.write("long ago")
    for event in ann.room.events:
        event.at_ms = now_ms() - 2 * 24 * 3600 * 1000
    texts = [f"text {number}" for number in range(150)]
    for text in texts:
        await ann.write(text)
    homeserver.add(
        ann.room, "m.room.message", homeserver.bot_id, {"msgtype": "m.text", "body": "a code"}
    )
    reader.cursor = '{"since": "elsewhere", "invites": {}}'

    taken = await reader.take()
    await ann.write("after it")
    later = await reader.take()

    assert [getattr(one, "text", "") for one in taken] == texts
    assert [getattr(one, "text", "") for one in later] == ["after it"]
    assert len(homeserver.calls_of("messages")) == 2


async def test_a_chat_encrypted_since_is_kept_when_the_cursor_is_refused(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    room = ann.room
    await ann.encrypt()
    await reader.take()
    reader.cursor = '{"since": "elsewhere", "invites": {}}'

    await reader.take()

    assert room.membership(homeserver.bot_id) == "join"
    assert len(ann.messages) == 1


async def test_a_sync_that_is_refused_without_a_cursor_is_told(
    homeserver: FakeMatrix, ann: Person, reader: Reader
) -> None:
    await ann.start()
    homeserver.faults.at("sync", Refused(400, "M_UNKNOWN", "no"))

    with pytest.raises(Exception, match="M_UNKNOWN"):
        await reader.take()


# ---- receipts -----------------------------------------------------------------------------------


async def test_a_receipt_reports_everything_up_to_a_message(
    homeserver: FakeMatrix, ann: Person, channel: Channel, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    ref = await channel.send(ann.chat_id, OutgoingMessage("Hi"))
    await ann.read(ref)
    (report,) = await reader.take()

    event = ann.room.event(ref)
    assert event is not None
    assert isinstance(report, DeliveryReported)
    assert (report.message_ref, report.state, report.chat_id) == (ref, "read", ann.chat_id)
    assert (report.user.user_id, report.up_to_ms) == (ann.user_id, event.at_ms)
    assert report.at_ms == ann.room.receipts["m.read", ann.user_id, None].at_ms


async def test_a_receipt_for_what_is_no_message_of_the_bot_names_its_time(
    ann: Person, channel: Channel, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    ref = await channel.send(ann.chat_id, OutgoingMessage("Hi"))
    await channel.edit(ann.chat_id, ref, OutgoingMessage("Hello"))
    await ann.read()
    (of_edit,) = await reader.take()
    await ann.write("Thanks")
    await ann.read(thread_id="main")
    _, of_own = await reader.take()

    for report in (of_edit, of_own):
        assert isinstance(report, DeliveryReported)
        assert report.message_ref == ""
        assert report.up_to_ms is not None


async def test_receipts_of_threads_private_ones_and_the_bots_own_report_nothing(
    homeserver: FakeMatrix, ann: Person, channel: Channel, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    ref = await channel.send(ann.chat_id, OutgoingMessage("Hi"))
    await ann.read(ref, kind="m.read.private")
    await ann.read(ref, thread_id="$of-a-thread")
    homeserver.receipt(ann.room, "m.read", homeserver.bot_id, ref, None)
    await ann.write("after them")
    (received,) = await reader.take()

    assert isinstance(received, MessageReceived)


async def test_old_receipts_are_not_taken_without_a_cursor(
    ann: Person, channel: Channel, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    ref = await channel.send(ann.chat_id, OutgoingMessage("Hi"))
    await ann.read(ref)
    reader.cursor = None
    young = await reader.take()
    (key,) = ann.room.receipts
    kept = ann.room.receipts[key]
    ann.room.receipts[key] = replace(kept, at_ms=kept.at_ms - 2 * 86_400_000)
    reader.cursor = None

    assert [type(one) for one in young] == [DeliveryReported]
    assert await reader.take() == []


async def test_receipts_of_a_group_report_nothing(
    homeserver: FakeMatrix, ann: Person, channel: Channel, reader: Reader
) -> None:
    await ann.start()
    await reader.take()
    ref = await channel.send(ann.chat_id, OutgoingMessage("Hi"))
    await ann.bring(homeserver.person("Eve"))
    await ann.read(ref)

    assert await reader.take() == []
