"""What a message looks like as an email."""

import re
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from msgsvc_core.channels import Button, DeliveryError, Media, OutgoingMessage, Reason, ReplyTarget
from msgsvc_core.channels.kinds import WrongSettings
from msgsvc_core.kernel.errors import InvalidValue, SettingsError
from msgsvc_devkit.platforms.email import FakeMail, Mail, Person
from msgsvc_devkit.web_servers import stop
from msgsvc_email.channel import EmailChannel

from .conftest import ChannelFactory, failure_of

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 32
PDF = b"%PDF-1.7 " + b"\0" * 32


@pytest.fixture
async def media_url() -> AsyncIterator[str]:
    async def give(request: web.Request) -> web.Response:
        is_png = request.path.endswith("png")
        kind = "image/png" if is_png else "application/pdf"
        return web.Response(body=PNG if is_png else PDF, content_type=kind)

    app = web.Application()
    app.add_routes([web.get("/{name}", give)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{site.port}"
    await stop(runner)


#: The page of a message's recipient, as the core gives it.
UNSUBSCRIBE_URL = "https://shop.example/preferences/prj_1.sub_1"


async def mailed(channel: EmailChannel, person: Person, text: str, **fields: object) -> Mail:
    message = OutgoingMessage(text, **fields).with_key("msg_1")  # type: ignore[arg-type] - by name
    message = message.with_unsubscribe_url(UNSUBSCRIBE_URL)
    ref = await channel.send(person.address, message)
    assert person.messages[-1].message_id == ref
    return person.messages[-1]


async def test_text_and_html_say_the_same(channel: EmailChannel, ann: Person) -> None:
    mail = await mailed(
        channel,
        ann,
        "**Hello** [shop](https://shop.example/a?b=c&d)\n\n2 * 3 < 7",
        format="markdown",
    )

    assert mail.text == "Hello shop\n\n2 * 3 < 7"
    assert mail.plain.startswith("Hello shop (https://shop.example/a?b=c&d)\n\n2 * 3 < 7\n\n-- \n")
    html = mail.parsed.get_body(("html",))
    assert html is not None
    assert "<b>Hello</b>" in html.get_content()


async def test_a_rich_text_has_headings_and_tables(channel: EmailChannel, ann: Person) -> None:
    text = (
        "<h2>Order</h2><ul><li>a &lt; b</li></ul><table><tr><th>c</th><td>d</td></tr></table><hr>e"
    )
    mail = await mailed(channel, ann, text, format="rich")

    assert mail.plain.startswith("Order\n\n• a < b\n\nc | d\n\n———\n\ne\n\n-- \n")
    html = mail.parsed.get_body(("html",))
    assert html is not None
    shown = re.sub(r' style="[^"]*"', "", html.get_content())
    table = "<table><tr><th>c</th><td>d</td></tr></table>"
    assert f"<h2>Order</h2><ul><li>a &lt; b</li></ul>{table}<hr/><p>e</p></td>" in shown
    assert mail.header("Subject") == "Order"


async def test_buttons_are_links_in_html_and_lines_in_text(
    channel: EmailChannel, ann: Person
) -> None:
    buttons = ((Button("Track <it>", url="https://shop.example/t?a=1&b=2"),),)
    mail = await mailed(channel, ann, "Sent", buttons=buttons)

    assert mail.rows == ((("Track <it>", "https://shop.example/t?a=1&b=2"),),)
    assert "\nTrack <it>: https://shop.example/t?a=1&b=2\n" in mail.plain


async def test_headers_name_sender_recipient_and_language(
    make_channel: ChannelFactory, ann: Person
) -> None:
    channel = await make_channel(
        sender_name='Ann & "Co"', reply_to="help@shop.example", lang="ru", subject="Заказ"
    )
    mail = await mailed(channel, ann, "Привет")

    assert mail.header("From") == '"Ann & \\"Co\\"" <news@shop.example>'
    assert (mail.header("To"), mail.header("Reply-To")) == (
        "ann@people.example",
        "help@shop.example",
    )
    assert (mail.header("Subject"), mail.header("Content-Language")) == ("Заказ", "ru")
    assert mail.header("Auto-Submitted") == "auto-generated"
    assert mail.header("X-Auto-Response-Suppress") == "All"
    assert "подписаны на рассылку" in mail.footer


async def test_a_name_of_other_letters_is_encoded(
    make_channel: ChannelFactory, ann: Person
) -> None:
    mail = await mailed(await make_channel(sender_name="Магазин Рога"), ann, "Привет")

    assert mail.header("From") == "Магазин Рога <news@shop.example>"
    assert b"=?utf-8?" in mail.raw.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("\n\n  Your code is 123456 \nDon't share it", "Your code is 123456"),
        ("x" * 200, "x" * 77 + "…"),
        ("word " * 40, "word " * 14 + "word…"),
        ("a\tb\x0bc\u2028d", "a b"),
        ("Заказ 7 готов " * 3, "Заказ 7 готов Заказ 7 готов Заказ 7 готов"),
        ("=?utf-8?q?not_encoded?=", "=?utf-8?q?not_encoded?="),
    ],
)
async def test_the_subject_is_the_first_line(
    channel: EmailChannel, ann: Person, text: str, subject: str
) -> None:
    mail = await mailed(channel, ann, text)

    assert mail.header("Subject") == subject


@pytest.mark.parametrize("evil", ["a\r\nBcc: eve@evil.example", "a\nX: y", "a\x00b", "a\u2028b"])
async def test_no_text_makes_a_header(
    channel: EmailChannel, make_channel: ChannelFactory, ann: Person, evil: str
) -> None:
    mail = await mailed(channel, ann, evil, buttons=((Button(evil, url="https://shop.example"),),))

    assert "Bcc" not in mail.parsed
    assert "X" not in mail.parsed
    for name in ("sender_name", "subject"):
        with pytest.raises((WrongSettings, SettingsError)):
            await make_channel(**{name: evil})


@pytest.mark.parametrize(
    "address",
    [
        "ann@people.example\r\nRCPT TO:<eve@evil.example>",
        "ann@people.example>",
        "<a@b.c>",
        "ann",
        "",
    ],
)
async def test_what_is_no_address_is_no_chat(channel: EmailChannel, address: str) -> None:
    with pytest.raises(InvalidValue):
        channel.parse_address(address)
    error = await failure_of(channel.send(address, OutgoingMessage("Hello").with_key("k")))

    assert error.reason is Reason.CHAT_NOT_FOUND


async def test_an_address_is_compared_in_its_normal_form(
    channel: EmailChannel, platform: FakeMail
) -> None:
    assert channel.parse_address(" Ann@Bücher.Example ") == "ann@xn--bcher-kva.example"
    person = platform.person("Ann", "xn--bcher-kva.example")
    await channel.send("Ann@bücher.example", OutgoingMessage("Hallo").with_key("k"))

    assert person.messages


async def test_letters_before_the_at_need_a_server_that_takes_them(
    channel: EmailChannel, make_channel: ChannelFactory, platform: FakeMail
) -> None:
    person = platform.person("Пётр")
    mail = await mailed(channel, person, "Привет")
    assert mail.header("To") == "пётр@people.example"

    platform.extensions.remove("SMTPUTF8")
    error = await failure_of(
        (await make_channel()).send(person.address, OutgoingMessage("Привет").with_key("k"))
    )

    assert error.reason is Reason.INVALID_MESSAGE
    assert "SMTPUTF8" in error.text


async def test_an_image_is_shown_in_the_message(
    channel: EmailChannel, ann: Person, media_url: str
) -> None:
    mail = await mailed(channel, ann, "Look", media=Media("image", f"{media_url}/cat.png"))

    [file] = mail.attachments
    assert (file.content, file.inline, file.mime_type) == (PNG, True, "image/png")


async def test_another_file_is_attached_by_its_name(
    channel: EmailChannel, ann: Person, media_url: str
) -> None:
    name = "Счёт №1 от 27 ноября, очень длинное имя файла для одной строки.pdf"
    mail = await mailed(channel, ann, "", media=Media("document", f"{media_url}/bill.pdf", name))

    [file] = mail.attachments
    assert (file.filename, file.content, file.inline) == (name, PDF, False)


async def test_a_file_that_is_too_large_is_refused(
    make_channel: ChannelFactory, media_url: str
) -> None:
    channel = await make_channel(max_attachment_bytes=10)
    message = OutgoingMessage("Look", media=Media("document", f"{media_url}/bill.pdf"))
    error = await failure_of(channel.send("ann@people.example", message.with_key("k")))

    assert (error.reason, error.text) == (Reason.INVALID_MESSAGE, "media: has more than 10 bytes")


async def test_the_message_id_is_the_same_in_each_attempt(
    channel: EmailChannel, platform: FakeMail, ann: Person
) -> None:
    bob = platform.person("Bob")
    message = OutgoingMessage("Hello").with_key("msg_7")
    refs = [await channel.send(one.address, message) for one in (ann, ann, bob)]

    assert refs[0] == refs[1]
    assert refs[1] != refs[2], "a message id proves who has read the message"
    assert re.fullmatch(r"msg_7\.[a-z2-7]{16}@shop\.example", refs[0])


async def test_a_channel_of_receipts_has_no_unsubscribe_link(
    make_channel: ChannelFactory, ann: Person
) -> None:
    mail = await mailed(await make_channel(unsubscribe=False), ann, "Your receipt")

    assert not mail.footer
    assert "List-Unsubscribe" not in mail.parsed
    assert mail.plain.strip() == "Your receipt"


async def test_a_projects_message_has_the_unsubscribe_link_of_its_recipient(
    channel: EmailChannel, ann: Person
) -> None:
    mail = await mailed(channel, ann, "News")
    link = mail.header("List-Unsubscribe").strip("<>")

    assert link == UNSUBSCRIBE_URL
    assert link in mail.plain
    assert mail.header("List-Unsubscribe-Post") == "List-Unsubscribe=One-Click"


def test_half_of_a_character_is_refused(channel: EmailChannel) -> None:
    problem = channel.problem(OutgoingMessage("\ud83d"))

    assert problem == "text: holds half of a character"


async def test_a_password_is_not_sent_in_the_clear(make_channel: ChannelFactory) -> None:
    with pytest.raises(SettingsError, match="not sent without tls"):
        await make_channel(host="mail.shop.example", tls="none")


async def test_edits_are_refused(channel: EmailChannel) -> None:
    with pytest.raises(DeliveryError):
        await channel.edit("ann@people.example", "x", OutgoingMessage("new"))
    with pytest.raises(DeliveryError):
        await channel.delete("ann@people.example", "x")


async def test_a_reply_is_in_the_conversation_whatever_the_configured_subject(
    make_channel: ChannelFactory, ann: Person
) -> None:
    channel = await make_channel(subject="News of the shop")
    message = OutgoingMessage("Which one?").replying_to(ReplyTarget("Заказ 7", ("1@a.example",)))
    await channel.send(ann.address, message.with_key("k"))
    mail = ann.messages[-1]

    assert mail.header("Subject") == "Re: Заказ 7"
    assert mail.header("In-Reply-To") == mail.header("References") == "<1@a.example>"
    assert mail.header("Auto-Submitted") == "auto-replied"


async def test_a_message_that_begins_a_conversation_has_its_subject(
    channel: EmailChannel, ann: Person
) -> None:
    message = OutgoingMessage("We got your form").replying_to(ReplyTarget("Order 7")).from_person()
    await channel.send(ann.address, message.with_key("k"))
    mail = ann.messages[-1]

    assert (mail.header("Subject"), mail.header("In-Reply-To")) == ("Order 7", "")
    assert "Auto-Submitted" not in mail.parsed
    assert "X-Auto-Response-Suppress" not in mail.parsed


async def test_what_a_stranger_wrote_adds_no_field(channel: EmailChannel, ann: Person) -> None:
    refs = ("a>\r\nBcc: <bob@people.example", "b c", "ü@a.example", "a" * 300, *(["d" * 250] * 20))
    target = ReplyTarget("x\r\nBcc: bob@people.example\r\n\r\nHello" + "y" * 300, refs)
    await channel.send(ann.address, OutgoingMessage("Hi").replying_to(target).with_key("k"))
    mail = ann.messages[-1]

    assert "Bcc" not in mail.parsed
    assert mail.header("References").split() == [f"<{'d' * 250}>"] * 20
    assert max(map(len, mail.raw.split(b"\r\n"))) <= 998
