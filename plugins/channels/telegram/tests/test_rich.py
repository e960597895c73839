"""Rich messages: headings, lists and tables, where the message asks for them."""

import pytest

from msgsvc_core.channels import Button, Media, OutgoingMessage
from msgsvc_devkit.platforms.telegram.calls import Refusal
from msgsvc_devkit.platforms.telegram.rich import shown_text

ORDER = """<h2>Order 1207</h2>
Hi <b>Ann</b> & Bob,
it is on its way.
<ul><li>Tea</li><li>Two mugs</li></ul>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea</td><td>4 €</td></tr></table>"""

SHOWN = """Order 1207
Hi Ann & Bob,
it is on its way.
Tea
Two mugs
 Item Price
 Tea 4 €"""


async def test_a_rich_text_is_a_rich_message(channel, anna, telegram):
    buttons = ((Button("Track", url="https://shop.example/1207"),),)
    await channel.send(str(anna.user_id), OutgoingMessage(ORDER, "rich", buttons, silent=True))

    (message,) = anna.messages
    assert telegram.calls[-1].method == "sendRichMessage"
    assert message.rich == {
        "html": "<h2>Order 1207</h2><p>Hi <b>Ann</b> &amp; Bob,<br>it is on its way.</p>"
        "<ul><li>Tea</li><li>Two mugs</li></ul>"
        "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea</td><td>4 €</td></tr></table>"
    }
    assert (message.text, message.labels, message.silent) == (SHOWN, [["Track"]], True)


async def test_a_message_becomes_rich_and_plain_again(channel, anna):
    chat = str(anna.user_id)
    ref = await channel.send(chat, OutgoingMessage("Order 1207"))

    await channel.edit(chat, ref, OutgoingMessage(ORDER, "rich"))
    assert anna.messages[0].text == SHOWN
    await channel.edit(chat, ref, OutgoingMessage(ORDER, "rich"))
    await channel.edit(chat, ref, OutgoingMessage("Delivered"))

    assert (anna.messages[0].text, anna.messages[0].rich) == ("Delivered", None)


async def test_a_caption_shows_blocks_as_lines(channel, anna, telegram):
    media = Media("image", telegram.host_file("cup.png", b"\x89PNG\r\n\x1a\n", "image/png"))
    text = "<h2>Cup</h2><ul><li>blue</li></ul>"
    await channel.send(str(anna.user_id), OutgoingMessage(text, "rich", media=media))

    assert anna.messages[0].text == "Cup\n\n• blue"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<ul>" + "<li>x</li>" * 249 + "</ul>", None),
        ("<ul>" + "<li>x</li>" * 250 + "</ul>", "text: must have at most 500 blocks"),
        ("<table><tr>" + "<td>x</td>" * 20 + "</tr></table>", None),
        ("<table><tr>" + "<td>x</td>" * 21 + "</tr></table>", "text: a table must have at most 20"),
        ("<blockquote>" * 15 + "x", None),
        ("<blockquote>" * 16 + "x", "text: must have at most 16 levels"),
        ("<p></p><hr", None),
        ("<b></b>", "text: shows nothing but markup"),
        ("x" * 4097, "text: must be at most 4096 characters"),
    ],
)
def test_what_telegram_does_not_take_is_refused_before_the_call(channel, text, problem):
    found = channel.problem(OutgoingMessage(text, "rich"))

    assert found is None if problem is None else (found or "").startswith(problem)


@pytest.mark.parametrize(
    "rich_message",
    [
        {},
        {"html": "x", "markdown": "x"},
        {"html": "x", "is_rtl": True},
        {"html": " "},
        {"html": "<div>x</div>"},
        {"html": "<p>x"},
        {"html": "<b><i>x</b></i>"},
        {"html": "<p style='color:red'>x</p>"},
        {"html": "<ul>x</ul>"},
        {"html": "<table><td>x</td></table>"},
        {"html": "<table><tr><td><p>x</p></td></tr></table>"},
        {"html": "<p><ul><li>x</li></ul></p>"},
        {"html": "&copy;"},
        {"html": "<!-- x -->y"},
        {"html": "x" * 32_769},
        {"html": "<hr/>" * 501 + "x"},
        {"html": "<blockquote>" * 17 + "x" + "</blockquote>" * 17},
        {"html": "<table><tr>" + "<td>x</td>" * 21 + "</tr></table>"},
    ],
    ids=lambda rich_message: str(rich_message)[:40],
)
def test_the_fake_refuses_what_the_documentation_does_not_have(rich_message):
    with pytest.raises(Refusal):
        shown_text(rich_message)
