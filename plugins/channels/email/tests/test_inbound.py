"""Who is believed to have written, what they wrote, and which reports count."""

import asyncio
from email import message_from_string, policy
from email.message import EmailMessage
from uuid import uuid4

import pytest

from msgsvc_core.channels import Blocked, MessageReceived, OutgoingMessage, Started, Update
from msgsvc_devkit.platforms.email import DOMAIN, FakeMail, Person
from msgsvc_email.channel import EmailChannel

from .conftest import ChannelFactory

Read = list[Update]


@pytest.fixture
async def inbound(make_channel: ChannelFactory, platform: FakeMail) -> EmailChannel:
    return await make_channel(imap=platform.inbound_settings["imap"])


async def read(channel: EmailChannel) -> Read:
    """All updates of the mailbox, from its start. There is at least one mail."""
    return list((await channel.poll_updates(None)).updates)


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
    assert received.text == "Order 7\n\nWhere is it?"


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
        {"Precedence": "bulk"},
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

    assert [one.chat_id for one in await read(inbound)] == [ann.address]


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
