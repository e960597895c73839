"""Who is believed to have written, what they wrote, and which reports count."""

import asyncio
import io
import time
from email import message_from_string, policy
from email.message import EmailMessage
from uuid import uuid4

import pytest

from msgsvc_core.channels import (
    Blocked,
    DeliveryReported,
    MessageReceived,
    OutgoingMessage,
    Reason,
    Started,
    Unreadable,
    Update,
)
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.platforms.email import DOMAIN, FakeMail, Person
from msgsvc_email.channel import EmailChannel

from .conftest import ChannelFactory

Read = list[Update]


@pytest.fixture
async def inbound(make_channel: ChannelFactory, platform: FakeMail) -> EmailChannel:
    return await make_channel(imap=platform.inbound_settings["imap"])


async def read(channel: EmailChannel) -> Read:
    """All that was read of the mailbox, from its start. There is at least one mail."""
    polled = await channel.poll_updates(None)
    return [one for one in polled.updates if not isinstance(one, Unreadable)]


def mail_of(person: Person, text: str = "Hello", **fields: str) -> EmailMessage:
    mail = EmailMessage()
    given = {
        "From": f"{person.name} <{person.address}>",
        "To": f"news@{DOMAIN}",
        "Message-ID": f"<{uuid4().hex}@people.example>",
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    for name, value in given.items():
        mail[name] = value
    mail.set_content(text)
    return mail


async def sent_to(channel: EmailChannel, person: Person) -> EmailMessage:
    """A message of ours, as the person got it."""
    await channel.send(person.address, OutgoingMessage("News").with_key(uuid4().hex))
    return person.messages[-1].parsed


async def test_an_unproven_sender_is_not_heard(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    platform.deliver(mail_of(ann), verified=False)

    assert await read(inbound) == []


@pytest.mark.parametrize(
    "result",
    [
        "mx.shop.example; dmarc=pass header.from=evil.example",
        "mx.shop.example; dmarc=fail header.from=people.example",
        "mx.shop.example; dkim=pass header.d=people.example",
        "mx.shop.example; spf=pass smtp.mailfrom=people.example",
        "mx.evil.example; dmarc=pass header.from=people.example",
        "mx.shop.example (dmarc=pass header.from=people.example); none",
        'mx.shop.example; dmarc=fail reason="; dmarc=pass header.from=people.example"',
    ],
)
async def test_results_that_prove_nothing(
    inbound: EmailChannel, platform: FakeMail, ann: Person, result: str
) -> None:
    raw = mail_of(ann).as_bytes()
    platform.mailbox.add(f"Authentication-Results: {result}\n".encode() + raw)

    assert await read(inbound) == []


@pytest.mark.parametrize(
    "result",
    [
        "mx.shop.example; spf=none; dmarc=pass (p=none) header.from=people.example",
        "mx.shop.example 1; dkim=pass header.d=people.example; spf=pass smtp.mailfrom=a@people.example",
    ],
)
async def test_results_that_prove_the_sender(
    inbound: EmailChannel, platform: FakeMail, ann: Person, result: str
) -> None:
    raw = mail_of(ann).as_bytes()
    platform.mailbox.add(f"Authentication-Results: {result}\n".encode() + raw)

    assert [type(one) for one in await read(inbound)] == [MessageReceived]


async def test_only_the_topmost_result_of_the_server_counts(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    forged = mail_of(
        ann, Authentication_Results="mx.shop.example; dmarc=pass header.from=people.example"
    )
    platform.deliver(forged, verified=False)

    assert await read(inbound) == []


async def test_a_reply_to_the_signed_address_is_heard_and_starts_nothing(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    reply_to = str((await sent_to(inbound, ann))["Reply-To"])
    bob = platform.person("Bob")
    platform.deliver(mail_of(ann, "Yes", To=reply_to, Subject="Re: News"), verified=False)
    platform.deliver(mail_of(bob, "Yes", To=reply_to, Subject="Re: News"), verified=False)
    for field in ({"Subject": "start auth_x"}, {"Subject": "Re: News"}):
        platform.deliver(mail_of(ann, "/start auth_x", To=reply_to, **field), verified=False)
    updates = await read(inbound)

    assert [(type(one), one.chat_id) for one in updates] == [(MessageReceived, ann.address)]


async def test_an_answer_names_the_message_and_leaves_out_what_it_quotes(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    ours = await sent_to(inbound, ann)
    text = (
        "Thank you!\n\nOn Fri, 27 Nov 2026 at 10:00, Shop <news@shop.example>\nwrote:\n\n> News\n"
        "> more\n"
    )
    platform.deliver(
        mail_of(ann, text, Subject="Re: News", In_Reply_To=str(ours["Message-ID"])), verified=False
    )
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert received.text == "Thank you!"
    assert received.reply_to == str(ours["Message-ID"]).strip("<>")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Hi\n-- \nAnn\nShop Ltd", "Hi"),
        ("> How many?\nTwo\n> When?\nToday", "Two\nToday"),
        ("Ok\n\n-----Original Message-----\nFrom: x", "Ok"),
        ("Спасибо\n\nпт, 27 нояб. 2026 г. в 10:00, Shop пишет:\n> News", "Спасибо"),
        ("On Monday she wrote:\nnothing", "On Monday she wrote:\nnothing"),
        ("two\n\nparagraphs", "two\n\nparagraphs"),
    ],
)
async def test_what_is_kept_of_a_text(
    inbound: EmailChannel, platform: FakeMail, ann: Person, text: str, kept: str
) -> None:
    platform.deliver(mail_of(ann, text, Subject="Re: x"))
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert received.text == kept


async def test_a_new_mail_keeps_its_subject(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    platform.deliver(mail_of(ann, "Where is it?", Subject="Order 7"))
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert (received.subject, received.text, received.begins) == ("Order 7", "Where is it?", True)


@pytest.mark.parametrize(
    ("written", "subject"),
    [
        ("Re: Order 7", "Order 7"),
        ("RE: Re[2]: Order 7", "Order 7"),
        ("AW: SV: Order 7", "Order 7"),
        ("R: Order 7", "Order 7"),
        ("Odp: Order 7", "Order 7"),
        ("Ответ: Заказ 7", "Заказ 7"),
        ("回复：Order 7", "Order 7"),
        ("Re:", ""),
    ],
)
async def test_a_reply_begins_no_conversation(
    inbound: EmailChannel, platform: FakeMail, ann: Person, written: str, subject: str
) -> None:
    platform.deliver(mail_of(ann, "Where is it?", Subject=written))
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert (received.subject, received.text, received.begins) == (subject, "Where is it?", False)


async def test_a_mail_names_those_before_it(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    refs = "<a@people.example> no-id <b@people.example> <c@people.example>"
    fields = {"References": refs, "In_Reply_To": "<c@people.example>"}
    platform.deliver(mail_of(ann, Subject="Another subject", **fields))
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert received.refers_to == ("a@people.example", "b@people.example", "c@people.example")
    assert not received.begins


async def test_a_subject_alone_is_the_text(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    platform.deliver(mail_of(ann, "", Subject="Where is my order?"))
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert received.text == received.subject == "Where is my order?"


async def test_html_alone_is_read_as_text(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    mail = mail_of(ann, Subject="Re: x")
    html = "<style>p{}</style><p>1 &lt; 2</p><p>Bye<br>Ann</p><blockquote>News</blockquote>"
    mail.set_content(html, subtype="html")
    platform.deliver(mail)
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)
    assert received.text == "1 < 2\nBye\nAnn"


@pytest.mark.parametrize(
    "fields",
    [
        {"Auto_Submitted": "auto-replied"},
        {"Auto_Submitted": "auto-generated (vacation)"},
        {"Precedence": "bulk"},
        {"Precedence": "auto_reply"},
        {"X_Autoresponse": "yes"},
        {"X_POST_MessageClass": "9; Autoresponder"},
        {"Subject": "Automatic reply: News"},
        {"Subject": "Abwesenheitsnotiz: bis Montag"},
        {"List_Id": "<list.people.example>"},
        {"Return_Path": "<>"},
        {"From": f"news@{DOMAIN}"},
        {"From": "ann@people.example, bob@people.example"},
    ],
)
async def test_programs_and_lists_are_not_heard(
    inbound: EmailChannel, platform: FakeMail, ann: Person, fields: dict[str, str]
) -> None:
    platform.deliver(mail_of(ann, **fields))

    assert await read(inbound) == []


@pytest.mark.parametrize(
    "fields", [{"Auto_Submitted": "no (a person)"}, {"List_Unsubscribe": "<https://crm.example>"}]
)
async def test_what_programs_add_to_a_persons_mail_makes_it_none_of_theirs(
    inbound: EmailChannel, platform: FakeMail, ann: Person, fields: dict[str, str]
) -> None:
    platform.deliver(mail_of(ann, **fields))

    assert [type(one) for one in await read(inbound)] == [MessageReceived]


async def test_a_link_starts_by_mail(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    assert inbound.deep_link("auth_x") == f"mailto:news@{DOMAIN}?subject=start%20auth_x"
    platform.deliver(mail_of(ann, "", Subject="start auth_x"))
    [started] = await read(inbound)

    assert isinstance(started, Started)
    assert started.payload == "auth_x"


def bounce(
    recipient: str, to: str, status: str = "5.1.1", action: str = "failed", headers: str = ""
) -> EmailMessage:
    report = (
        "From: MAILER-DAEMON@mx.people.example\n"
        f"To: {to}\nMessage-ID: <{uuid4().hex}@mx.people.example>\nMIME-Version: 1.0\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\n\n'
        "--b\nContent-Type: text/plain\n\nSorry.\n\n"
        "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.people.example\n\n"
        f"Final-Recipient: rfc822; {recipient}\nAction: {action}\nStatus: {status}\n\n"
        f"--b\nContent-Type: text/rfc822-headers\n\n{headers}\n--b--\n"
    )
    return parsed(report)


def parsed(text: str) -> EmailMessage:
    mail = message_from_string(text, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    return mail


async def test_a_bounce_to_its_address_blocks(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    await sent_to(inbound, ann)
    platform.deliver(bounce(ann.address, ann.messages[-1].sender), verified=False)
    [blocked] = await read(inbound)

    assert isinstance(blocked, Blocked)
    assert (blocked.chat_id, blocked.user.user_id) == (ann.address, ann.address)


async def test_a_bounce_with_our_message_blocks_an_address_that_forwards(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    ours = await sent_to(inbound, ann)
    headers = f"To: <{ann.address}>\nMessage-ID: {ours['Message-ID']}\n"
    platform.deliver(bounce("other@elsewhere.example", f"news@{DOMAIN}", headers=headers))

    reported, blocked = await read(inbound)

    assert isinstance(reported, DeliveryReported)
    assert (reported.message_ref, reported.state, reported.reason) == (
        str(ours["Message-ID"]).strip("<>"),
        "failed",
        Reason.CHAT_NOT_FOUND,
    )
    assert isinstance(blocked, Blocked)
    assert (blocked.chat_id, blocked.by_failure) == (ann.address, True)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("5.2.2", Reason.UNKNOWN),
        ("5.3.4", Reason.INVALID_MESSAGE),
        ("4.4.7", Reason.PLATFORM_UNAVAILABLE),
        ("5.4.7", Reason.PLATFORM_UNAVAILABLE),
    ],
)
async def test_a_message_that_did_not_arrive_has_failed_and_nobody_is_blocked(
    inbound: EmailChannel, platform: FakeMail, ann: Person, status: str, reason: Reason
) -> None:
    ours = await sent_to(inbound, ann)
    headers = f"To: <{ann.address}>\nMessage-ID: {ours['Message-ID']}\n"
    platform.deliver(bounce(ann.address, f"news@{DOMAIN}", status=status, headers=headers))
    [reported] = await read(inbound)

    assert isinstance(reported, DeliveryReported)
    assert (reported.state, reported.reason, reported.chat_id) == ("failed", reason, "")


TEXT_BOUNCES = {
    "qmail": (
        "Hi. This is the qmail-send program at mx.people.example.\n\n<{address}>:\n"
        "Sorry, no mailbox here by that name. (#5.1.1)\n\n"
        "--- Below this line is a copy of the message.\n\nTo: <{address}>\nMessage-ID: {ref}\n\nNews"
    ),
    "Exim": (
        "A message that you sent could not be delivered.\n\n  {address}\n"
        "    host mx.people.example [192.0.2.1]: 550 Unrouteable address\n\n"
        "------ This is a copy of the message, including all the headers. ------\n\n"
        "To: {address}\nMessage-ID: {ref}\n"
    ),
    "Exchange": (
        "Your message did not reach some or all of the intended recipients.\n\n"
        "      {address} on 11/2/2026 10:00 AM\n\n"
        "  The e-mail account does not exist at the organization this message was sent to.\n\n"
        "Message-ID: {ref}\n"
    ),
}


@pytest.mark.parametrize("program", TEXT_BOUNCES)
async def test_a_bounce_for_people_to_read_counts_as_well(
    inbound: EmailChannel, platform: FakeMail, ann: Person, program: str
) -> None:
    ours = await sent_to(inbound, ann)
    text = TEXT_BOUNCES[program].format(address=ann.address, ref=ours["Message-ID"])
    mail = mail_of(ann, text, From="MAILER-DAEMON@mx.people.example", Subject="failure notice")
    platform.deliver(mail, verified=False)
    updates = await read(inbound)

    assert [type(one) for one in updates] == [DeliveryReported, Blocked]
    assert updates[1].chat_id == ann.address


@pytest.mark.parametrize(
    "text",
    [
        "<{address}>:\nSorry, no mailbox here by that name. (#5.1.1)",
        "<{address}>:\nThe mailbox is full.\n\n--- Below this line is a copy\nMessage-ID: <a@b.example>",
        "Nothing that anybody could read.",
    ],
)
async def test_a_bounce_for_people_that_proves_nothing_is_no_ticket_either(
    inbound: EmailChannel, platform: FakeMail, ann: Person, text: str
) -> None:
    await sent_to(inbound, ann)
    written = text.format(address=ann.address)
    sender = "Mail Delivery Subsystem <mailer-daemon@mx.people.example>"
    platform.deliver(mail_of(ann, written, From=sender, Subject="Returned mail"))

    assert await read(inbound) == []


async def test_a_postmaster_may_have_a_question(inbound: EmailChannel, platform: FakeMail) -> None:
    postmaster = Person("Paul", "postmaster@people.example")
    platform.deliver(mail_of(postmaster, "Why do you write?", Subject="A question"))
    [received] = await read(inbound)

    assert isinstance(received, MessageReceived)


@pytest.mark.parametrize("how", ["delayed", "full", "forged address", "of another", "no proof"])
async def test_other_bounces_block_nobody(
    inbound: EmailChannel, platform: FakeMail, ann: Person, how: str
) -> None:
    ours = await sent_to(inbound, ann)
    sender, bob = ann.messages[-1].sender, platform.person("Bob")
    headers = f"To: <{bob.address}>\nMessage-ID: {ours['Message-ID']}\n"
    platform.deliver(
        {
            "delayed": bounce(ann.address, sender, action="delayed", status="4.4.1"),
            "full": bounce(ann.address, sender, status="5.2.2"),
            "forged address": bounce(ann.address, f"news+b-{'a' * 16}@{DOMAIN}"),
            "of another": bounce(bob.address, sender, headers=headers),
            "no proof": bounce(ann.address, f"news@{DOMAIN}"),
        }[how]
    )

    assert await read(inbound) == []


async def test_a_complaint_blocks(inbound: EmailChannel, platform: FakeMail, ann: Person) -> None:
    ours = await sent_to(inbound, ann)
    for message_id in (str(ours["Message-ID"]), "<made.up@shop.example>"):
        platform.deliver(
            parsed(
                f"From: fbl@people.example\nTo: news@{DOMAIN}\nMessage-ID: <{uuid4().hex}@x.example>\n"
                "MIME-Version: 1.0\n"
                'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\n\n'
                "--b\nContent-Type: text/plain\n\nA complaint.\n\n"
                "--b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\nVersion: 1\n\n"
                "--b\nContent-Type: message/rfc822\n\n"
                f"To: <{ann.address}>\nMessage-ID: {message_id}\n\nNews\n\n--b--\n"
            )
        )

    assert [(type(one), one.chat_id) for one in await read(inbound)] == [(Blocked, ann.address)]


async def test_a_folder_with_new_ids_brings_the_same_updates(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    platform.deliver(mail_of(ann))
    first = await inbound.poll_updates(None)
    platform.mailbox.rebuild()
    await platform.kill()
    await platform.restart()
    await asyncio.sleep(0)
    await inbound.close()
    second = await inbound.poll_updates(first.cursor)

    assert [one.update_id for one in second.updates] == [one.update_id for one in first.updates]
    assert (first.cursor, second.cursor) == ("1:1", "2:101")


async def test_a_large_mail_is_read_while_the_service_does_other_things(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    lines = "ok\n" * 100_000
    platform.deliver(mail_of(ann, lines, Subject="Re: x"))
    longest_s, began = 0.0, time.perf_counter()

    async def watch() -> None:
        nonlocal longest_s, began
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            longest_s, began = max(longest_s, now - began), now

    watching = asyncio.create_task(watch())
    [received] = await read(inbound)
    watching.cancel()

    assert isinstance(received, MessageReceived)
    assert received.text == lines[:16_000]
    assert longest_s < patient(0.5)


async def test_a_mail_that_does_not_end_is_left_out_and_the_next_is_read(
    inbound: EmailChannel,
    platform: FakeMail,
    ann: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("msgsvc_email.channel.READ_S", 0.0)
    platform.deliver(mail_of(ann, "ok\n" * 100_000, Subject="Re: x"))
    platform.deliver(mail_of(ann, "Hello", Subject="Re: x"))
    updates = await read(inbound)

    assert [one.text for one in updates if isinstance(one, MessageReceived)] == ["Hello"]


async def unread(channel: EmailChannel) -> list[Unreadable]:
    """What could not be read of the mailbox."""
    polled = await channel.poll_updates(None)
    return [one for one in polled.updates if isinstance(one, Unreadable)]


async def test_a_mail_that_is_not_read_is_kept_with_the_reason_and_its_bytes(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    platform.deliver(mail_of(ann), verified=False)
    platform.deliver(mail_of(ann, Auto_Submitted="auto-replied"))
    platform.deliver(mail_of(ann, From="a@x.example, b@x.example"))
    platform.deliver(mail_of(ann, ""))
    platform.mailbox.add(b"\r\nno fields")
    platform.deliver(mail_of(ann, From="Mailer <MAILER-DAEMON@mx.example>"))
    found = await unread(inbound)

    assert [(one.reason, one.kind) for one in found] == [
        ("unproven_sender", "email"),
        ("automatic", "email"),
        ("no_sender", "email"),
        ("empty", "email"),
        ("malformed", "email"),
        ("unmatched", "report"),
    ]
    assert [one.raw for one in found] == list(platform.mailbox.mails.values())
    assert [one.user.user_id for one in found[:3]] == [ann.address, ann.address, ""]


async def test_a_mail_of_the_channel_itself_and_a_delay_are_not_kept(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    platform.deliver(mail_of(ann, From=f"news@{DOMAIN}"))
    delayed = (
        "From: MAILER-DAEMON@mx.example\n"
        "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n\n"
        "--b\nContent-Type: message/delivery-status\n\n"
        "Reporting-MTA: dns; mx.example\n\n"
        f"Final-Recipient: rfc822; {ann.address}\nAction: delayed\nStatus: 4.4.1\n\n--b--\n"
    )
    platform.mailbox.add(delayed.encode())

    assert (await inbound.poll_updates(None)).updates == ()


async def test_a_mail_that_is_too_large_is_kept_in_its_beginning(
    inbound: EmailChannel, platform: FakeMail, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_email.imap.MAX_MESSAGE_BYTES", 400_000)
    monkeypatch.setattr("msgsvc_email.imap.Folder.fetch.__defaults__", (400_000,))
    platform.deliver(mail_of(ann, "ok\n" * 200_000))
    platform.deliver(mail_of(ann, "Hello", Subject="Re: x"))
    polled = await inbound.poll_updates(None)
    [large, after] = polled.updates

    assert isinstance(large, Unreadable)
    assert large.reason == "too_large"
    assert len(large.raw) == 65_536
    assert large.size == len(next(iter(platform.mailbox.mails.values())))
    assert isinstance(after, MessageReceived)


async def test_a_mail_that_does_not_end_is_kept_and_has_more_time_when_it_is_taken(
    inbound: EmailChannel, platform: FakeMail, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgsvc_email.channel.READ_S", 0.0)
    platform.deliver(mail_of(ann, "ok\n" * 100_000, Subject="Re: x"))
    [found] = await unread(inbound)
    [taken] = await inbound.take_anyway(found)

    assert found.reason == "timed_out"
    assert isinstance(taken, MessageReceived)


async def test_a_failure_with_one_mail_does_not_stop_the_next(
    inbound: EmailChannel, platform: FakeMail, ann: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: object) -> list[object]:
        monkeypatch.undo()
        raise RuntimeError("a bug")

    monkeypatch.setattr("msgsvc_email.updates.files_of", failing)
    platform.deliver(mail_of(ann))
    platform.deliver(mail_of(ann, "Hello", Subject="Re: x"))
    [failed, after] = (await inbound.poll_updates(None)).updates

    assert isinstance(failed, Unreadable)
    assert (failed.reason, failed.detail) == ("fault", "the service failed on it (RuntimeError)")
    assert isinstance(after, MessageReceived)


@pytest.mark.parametrize(
    ("fields", "verified"),
    [({}, False), ({"Auto_Submitted": "auto-replied"}, True), ({"List_Id": "<a.b>"}, False)],
)
async def test_a_mail_taken_anyway_is_heard_without_the_checks_of_its_sender(
    inbound: EmailChannel, platform: FakeMail, ann: Person, fields: dict[str, str], verified: bool
) -> None:
    mail = mail_of(ann, "Hello", Subject="Re: x", **fields)
    platform.deliver(mail, verified=verified)
    [found] = await unread(inbound)
    [taken] = await inbound.take_anyway(found)

    assert isinstance(taken, MessageReceived)
    assert (taken.chat_id, taken.text) == (ann.address, "Hello")
    assert taken.message_ref == str(mail["Message-ID"]).strip("<>")


@pytest.mark.parametrize(
    ("subject", "text"), [("start auth_x", ""), ("Re: x", "/start auth_x"), ("Re: x", "/start@b y")]
)
async def test_a_start_is_never_taken_without_a_proof(
    inbound: EmailChannel, platform: FakeMail, ann: Person, subject: str, text: str
) -> None:
    mail = mail_of(ann, text, Subject=subject)
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="a.pdf")
    platform.deliver(mail, verified=False)
    [found] = await unread(inbound)
    [still] = await inbound.take_anyway(found)

    assert isinstance(still, Unreadable)
    assert still.reason == "unproven_sender"


async def test_a_file_of_a_mail_taken_anyway_can_be_fetched(
    inbound: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    mail = mail_of(ann, "Here", Subject="Re: x")
    mail.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="a.pdf")
    platform.deliver(mail, verified=False)
    [found] = await unread(inbound)
    [taken] = await inbound.take_anyway(found)
    assert isinstance(taken, MessageReceived)
    into = io.BytesIO()
    await inbound.fetch_file(taken.files[0].file_ref, into, 100)

    assert into.getvalue() == b"%PDF"
