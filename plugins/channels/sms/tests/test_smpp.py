"""What the SMPP channel says to a centre, and makes of what the centre says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from msgsvc_core.channels import (
    Blocked,
    Channel,
    ChannelNotReady,
    DeliveryReported,
    Media,
    MessageReceived,
    OutgoingMessage,
    Reason,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_devkit import until
from msgsvc_devkit.certificates import server_context, write_certificate
from msgsvc_devkit.platforms.sms import FakeSmsCentre, Person, wire
from msgsvc_devkit.platforms.sms.centre import SENDER, ReceiptForm

from .conftest import ChannelFactory, failure_of

HELLO = OutgoingMessage("Hello", key="k1")


async def received(channel: Channel, count: int = 1) -> list[Update]:
    """So many updates; the last are not acknowledged."""
    found: list[Update] = []
    cursor = None
    while len(found) < count:
        polled = await channel.poll_updates(cursor)
        found, cursor = [*found, *polled.updates], polled.cursor
    return found


# ---- out ----------------------------------------------------------------------------------------


async def test_a_long_text_goes_in_parts_and_the_last_asks_for_a_receipt(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    ref = await channel.send(ann.number, OutgoingMessage("Привет! " * 20, key="k"))

    [shown] = ann.messages
    assert (shown.text, shown.parts, shown.ref) == ("Привет! " * 20, 3, ref)
    assert [each.registered for _, each in centre.submitted] == [0, 0, 1]
    assert {each.coding for _, each in centre.submitted} == {8}


async def test_a_sixteen_bit_reference(make_channel: ChannelFactory, ann: Person) -> None:
    channel = await make_channel(reference_bits="16")
    await channel.send(ann.number, OutgoingMessage("x" * 320, key="k"))

    assert (ann.messages[0].text, ann.messages[0].parts) == ("x" * 320, 3)


@pytest.mark.parametrize(
    ("sender", "shown"),
    [
        (SENDER, (1, 1, SENDER[1:])),
        ("Shop & Co", (5, 0, "Shop & Co")),
        ("12345", (3, 0, "12345")),
    ],
)
async def test_the_sender_is_a_number_a_name_or_a_short_number(
    make_channel: ChannelFactory,
    centre: FakeSmsCentre,
    ann: Person,
    sender: str,
    shown: tuple[int, int, str],
) -> None:
    await (await make_channel(sender=sender)).send(ann.number, HELLO)

    assert centre.submitted[0][1].source == shown


async def test_links_show_their_address_and_files_are_refused(
    channel: Channel, ann: Person
) -> None:
    message = OutgoingMessage("**News**: [here](https://x.example/a)", format="markdown", key="k")
    await channel.send(ann.number, message)
    media = OutgoingMessage("Look", media=Media("image", "https://x.example/p.png"))

    assert ann.messages[0].text == "News: here (https://x.example/a)"
    assert channel.problem(media) == "media.type: this channel does not take 'image'"


@pytest.mark.parametrize("status", [wire.THROTTLED, wire.QUEUE_FULL])
async def test_a_centre_that_is_busy_is_a_rate_limit(
    channel: Channel, centre: FakeSmsCentre, ann: Person, status: int
) -> None:
    centre.statuses.append(status)
    error = await failure_of(channel.send(ann.number, HELLO))

    assert (error.reason, error.in_doubt, error.scope) == (Reason.RATE_LIMITED, False, "bot")


async def test_a_later_part_is_tried_again_while_the_centre_is_busy(
    channel: Channel, centre: FakeSmsCentre, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_sms.smpp.PART_WAIT_S", 0.01)

    centre.statuses.extend([wire.OK, wire.THROTTLED, wire.QUEUE_FULL])
    ref = await channel.send(ann.number, OutgoingMessage("x" * 400, key="k"))

    assert [each.text for each in ann.messages] == ["x" * 400]
    assert ann.messages[0].ref == ref


async def test_a_message_of_which_a_part_was_taken_is_in_doubt(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    centre.statuses.extend([wire.OK, wire.SUBMIT_FAILED])
    error = await failure_of(channel.send(ann.number, OutgoingMessage("x" * 400, key="k")))

    assert error.in_doubt
    assert error.text.startswith("the centre took 1 of 3 parts")


async def test_requests_share_one_session_within_the_window(
    make_channel: ChannelFactory, centre: FakeSmsCentre
) -> None:
    channel = await make_channel(window=3)
    centre.most_waiting = 3
    await asyncio.gather(
        *(channel.send(f"+4915120000{n:03}", HELLO) for n in range(30)),
    )

    assert (len(centre.submitted), centre.binds) == (30, 1)


async def test_a_lost_session_is_bound_again(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    await channel.send(ann.number, HELLO)
    centre.drop_connections()
    assert not (await channel.check()).ok
    await channel.send(ann.number, HELLO)

    assert (len(ann.messages), centre.binds) == (2, 2)


async def test_a_session_that_the_centre_forgot_is_bound_again(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    await channel.send(ann.number, HELLO)
    centre.statuses.append(4)  # invalid bind state
    error = await failure_of(channel.send(ann.number, HELLO))
    await channel.send(ann.number, HELLO)

    assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)
    assert (len(ann.messages), centre.binds) == (2, 2)


async def test_while_the_centre_is_away_binds_wait_longer_and_longer(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    await centre.kill()
    errors = [await failure_of(channel.send(ann.number, HELLO)) for _ in range(6)]
    await centre.restart()
    still = await failure_of(channel.send(ann.number, HELLO))

    assert all(error.reason is Reason.PLATFORM_UNAVAILABLE for error in [*errors, still])
    assert not any(error.in_doubt for error in [*errors, still])
    assert not centre.binds
    assert (await channel.check()).ok, "an operator who asks does not wait"


async def test_the_centre_is_answered_when_it_asks(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    await channel.send(ann.number, HELLO)
    centre.enquire()

    async def answered() -> bool:
        return centre.alive == 1

    await until(answered)


async def test_the_session_is_kept_alive_and_ended_in_order(
    make_channel: ChannelFactory, centre: FakeSmsCentre, ann: Person
) -> None:
    channel = await make_channel(enquire_s=0.02)
    await channel.send(ann.number, HELLO)

    async def enquired() -> bool:
        return centre.commands.count(wire.ENQUIRE) > 2

    await until(enquired)
    await channel.close()

    assert centre.commands[-1] == wire.UNBIND


async def test_nothing_of_a_number_shows_in_an_error(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    ann.gone = True
    error = await failure_of(channel.send(ann.number, HELLO))

    assert error.reason is Reason.CHAT_NOT_FOUND
    assert ann.number[1:] not in str(error)


class TestTls:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        return write_certificate(tmp_path / "centre.pem", "127.0.0.1")

    @pytest.fixture
    async def centre(self, certificate: Path) -> AsyncIterator[FakeSmsCentre]:
        async with FakeSmsCentre(server_context(certificate)) as centre:
            yield centre

    async def test_a_session_by_tls_trusts_the_named_certificate_alone(
        self, make_channel: ChannelFactory, certificate: Path, ann: Person
    ) -> None:
        trusting = await make_channel(ca_file=str(certificate))
        await trusting.send(ann.number, HELLO)
        other = await make_channel()
        error = await failure_of(other.send(ann.number, HELLO))

        assert [each.text for each in ann.messages] == ["Hello"]
        assert (error.reason, error.in_doubt) == (Reason.PLATFORM_UNAVAILABLE, False)


# ---- in -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Long {€} text. " * 30, "Длинный 😀 текст. " * 30])
async def test_the_parts_of_a_text_are_joined_in_any_order(
    channel: Channel, centre: FakeSmsCentre, ann: Person, text: str
) -> None:
    centre.write(ann, text, part_octets=133)
    centre._queue.reverse()
    [update] = await received(channel)

    assert isinstance(update, MessageReceived)
    assert update.text == text


async def test_parts_are_kept_while_the_process_is_replaced(
    make_channel: ChannelFactory, centre: FakeSmsCentre, ann: Person
) -> None:
    first = await make_channel()
    await first.check()
    centre.write(ann, "x" * 300, part_octets=153)
    last = centre._queue.pop()

    async def taken() -> bool:
        return not centre._queue

    await until(taken)
    await first.close()
    second = await make_channel()
    centre.deliver(last.body)
    [update] = await received(second)

    assert isinstance(update, MessageReceived)
    assert update.text == "x" * 300


async def test_what_nobody_acknowledged_is_there_after_a_restart(
    make_channel: ChannelFactory, centre: FakeSmsCentre, ann: Person
) -> None:
    first = await make_channel()
    centre.write(ann, "Hello")
    before = await received(first)
    await first.close()
    again = await received(await make_channel())

    assert [each.update_id for each in before] == [each.update_id for each in again]


@pytest.mark.parametrize("form", ["both", "text", "tlv"])
@pytest.mark.parametrize("hexadecimal", [False, True])
async def test_a_receipt_reports_on_its_message(
    make_channel: ChannelFactory,
    centre: FakeSmsCentre,
    ann: Person,
    form: ReceiptForm,
    hexadecimal: bool,
) -> None:
    centre.receipt_form, centre.hexadecimal_ids = form, hexadecimal
    channel = await make_channel(receipt_ids="decimal" if hexadecimal else "same")
    ref = await channel.send(ann.number, HELLO)
    [update] = await received(channel)

    assert isinstance(update, DeliveryReported)
    assert (update.message_ref, update.state) == (ref, "delivered")


async def test_words_stop_messages_and_allow_them_again(
    make_channel: ChannelFactory, centre: FakeSmsCentre, ann: Person
) -> None:
    channel = await make_channel(stop_words="STOP, хватит", start_words="START, давай")
    for text in ("stop.", "  Хватит!", "Please stop", "START", "Давай"):
        centre.write(ann, text)
    updates = await received(channel, 7)

    assert [type(each) for each in updates] == [
        *(Blocked, Blocked, MessageReceived),
        *(Unblocked, Started, Unblocked, Started),
    ]
    assert {each.chat_id for each in updates} == {ann.number}


@pytest.mark.parametrize(
    ("coding", "content"),
    [
        (0xF1, b"STOP"),
        (0x11, b"Stop."),
        (0x02, b"stop all"),
        (0x04, "arrêt".encode()),
        (0x18, "STOP".encode("utf-16-be")),
        (0x08, "\ufeffSTOP".encode("utf-16-be")),
        (0x08, "\ufeffstop".encode("utf-16-le")),
        (0x19, "“Stop”".encode("utf-16-be")),
    ],
)
async def test_a_word_stops_messages_in_whatever_alphabet_it_comes(
    channel: Channel, centre: FakeSmsCentre, ann: Person, coding: int, content: bytes
) -> None:
    centre.deliver(wire.deliver_body(ann.number, SENDER, content, coding=coding))
    [update] = await received(channel)

    assert (type(update), update.chat_id) == (Blocked, ann.number)


async def test_what_is_no_text_is_shown_as_its_bytes(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    centre.deliver(wire.deliver_body(ann.number, SENDER, b"\x01\xfe", coding=4))
    [update] = await received(channel)

    assert isinstance(update, MessageReceived)
    assert update.text == "\ufffd 01 fe"


async def test_nobody_signs_in_by_a_text_whose_sender_nobody_proves(
    make_channel: ChannelFactory, centre: FakeSmsCentre, ann: Person
) -> None:
    channel = await make_channel()
    for text in ("start auth_x", "/start auth_x", "/start", "Hello"):
        centre.write(ann, text)
    *refused, start, hello = await received(channel, 4)

    with pytest.raises(ChannelNotReady):
        channel.deep_link("auth_x")
    for each in refused:
        assert isinstance(each, Unreadable)
        assert each.reason == "unproven_sender"
        # Whoever has looked at it.
        [still] = await channel.take_anyway(each)
        assert isinstance(still, Unreadable)
    assert [type(start), type(hello)] == [Started, MessageReceived]
    assert start.user.phone is None


async def test_a_text_of_the_gsm_alphabet_may_be_longer_than_others(
    channel: Channel, ann: Person
) -> None:
    text = "x" * 2432
    await channel.send(ann.number, OutgoingMessage(text, key="k"))

    assert (ann.messages[0].text, ann.messages[0].parts) == (text, 16)
    assert channel.problem(OutgoingMessage(text + "x")) is not None
    assert channel.problem(OutgoingMessage("я" * 1056)) is None
    assert channel.problem(OutgoingMessage("я" * 1057)) is not None


async def test_plain_punctuation_saves_parts(make_channel: ChannelFactory, ann: Person) -> None:
    text = "\u201cYour parcel\u201d \u2013 it\u2019s here\u2026 " * 4
    typographic, plain = await make_channel(), await make_channel(plain_punctuation=True)
    await typographic.send(ann.number, OutgoingMessage(text, key="k1"))
    await plain.send(ann.number, OutgoingMessage(text, key="k2"))

    assert [each.parts for each in ann.messages] == [2, 1]
    assert ann.messages[1].text == '"Your parcel" - it\'s here... ' * 4


async def test_a_sender_as_dialled_in_the_default_country(make_channel: ChannelFactory) -> None:
    channel = await make_channel(default_country="de")
    updates = channel.updates_of("01512 3456789", "STOP", "u1")  # type: ignore[attr-defined] # SmsChannel's

    assert [(type(each), each.chat_id) for each in updates] == [(Blocked, "+4915123456789")]


async def test_a_unit_that_cannot_be_read_is_kept_and_the_next_is_read(
    channel: Channel, centre: FakeSmsCentre, ann: Person
) -> None:
    body = wire.deliver_body(ann.number, SENDER, b"Hello", coding=0)
    centre.deliver(body[:-3])
    # A header of parts that is longer than the text.
    centre.deliver(wire.deliver_body(ann.number, SENDER, b"\x20\x00", coding=0, esm_class=0x40))
    # A receipt that names no message.
    centre.deliver(wire.deliver_body(ann.number, SENDER, b"done", coding=0, esm_class=0x04))
    centre.write(ann, "Hello")
    *odd, hello = await received(channel, 4)

    assert isinstance(hello, MessageReceived)
    for each in odd:
        assert isinstance(each, Unreadable)
        assert each.reason == "malformed"
        assert await channel.take_anyway(each) == [each]
    assert isinstance(odd[0], Unreadable)
    assert odd[0].raw == body[:-3]


async def test_a_unit_that_this_version_reads_is_taken(channel: Channel, ann: Person) -> None:
    raw = wire.deliver_body(ann.number, SENDER, b"Hello", coding=0)
    item = Unreadable.of(raw, UnreadableReason.MALFORMED, "", origin="unit")
    [taken] = await channel.take_anyway(item)

    assert isinstance(taken, MessageReceived)
    assert (taken.chat_id, taken.text) == (ann.number, "Hello")
