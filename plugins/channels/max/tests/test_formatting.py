"""Texts, whatever is in them, arrive as they were meant, or are refused before they are sent."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.channels import Button, Format, Media, OutgoingMessage
from msgsvc_core.content.markup import to_spans, utf16_length
from msgsvc_devkit.platforms.max.markup import read_text
from msgsvc_max.formatting import problem_of, text_fields

from .conftest import send_to

NASTY = [
    "a < b && c > d",
    "&lt;b&gt; &amp;amp; &copy;",
    "*not* _markup_ [x](y) ++u++ ^^h^^ # h",
    "</b></a><h1>",
    "\"quoted\" 'too'",
    "line\n\n  indented\ttab",
]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("wrapped", [False, True])
async def test_what_looks_like_markup_is_shown_as_it_is(channel, ann, text, wrapped):
    # Escaped in html, between looks; and plain, where nothing is markup.
    if wrapped:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        await send_to(channel, ann, f"<b>{escaped}</b>!", format="html")
    else:
        await send_to(channel, ann, text)

    assert ann.messages[0].text == (f"{text}!" if wrapped else text)


@pytest.mark.parametrize("text_format", ["html", "markdown"])
async def test_looks_are_the_platforms(channel, ann, text_format):
    html = (
        "<b>b</b><i>i</i><u>u</u><s>s</s><code>c</code><pre>p</pre>"
        '<a href="https://shop.example/?a=1&amp;b=%22">l</a>'
    )
    markdown = '**b** *i* ~~s~~ `c` [l](https://shop.example/?a=1&b=")'
    await send_to(channel, ann, html if text_format == "html" else markdown, format=text_format)

    marks = [(one["type"], one.get("url")) for one in ann.messages[0].markup]
    expected = {
        "html": ["strong", "emphasized", "underline", "strikethrough"] + ["monospaced"] * 2,
        "markdown": ["strong", "emphasized", "strikethrough", "monospaced"],
    }
    assert [kind for kind, _ in marks] == [*expected[text_format], "link"]
    assert marks[-1][1] in {"https://shop.example/?a=1&b=%22", 'https://shop.example/?a=1&b="'}


@settings(deadline=None)  # other work on the machine
@given(
    text=st.text(
        st.sampled_from("ab<>&\"'*_`~[]()/\\#;: \n😀ё") | st.characters(exclude_categories=["Cs"])
    ),
    text_format=st.sampled_from(["plain", "markdown", "html"]),
)
def test_every_text_is_read_as_it_was_meant(text: str, text_format: Format) -> None:
    fields = text_fields(OutgoingMessage(text, format=text_format))

    shown, _ = read_text(fields["text"], fields.get("format"))

    assert shown == "".join(span.text for span in to_spans(text, text_format))


@settings(deadline=None)  # other work on the machine
@given(st.text(st.sampled_from("<b>i</aru=&;😀*_` \n"), min_size=1500, max_size=6000))
def test_what_is_not_a_problem_fits(text: str) -> None:
    message = OutgoingMessage(text, format="html")

    if problem_of(message) is None:
        assert utf16_length(text_fields(message)["text"]) <= 4000


def test_the_length_is_counted_in_utf16(channel):
    assert channel.problem(OutgoingMessage("😀" * 2000)) is None
    assert channel.problem(OutgoingMessage("😀" * 2000 + "x")).startswith("text: ")


async def test_a_text_that_is_too_long_with_its_looks_goes_without_them(channel, ann):
    text = "x" * 3990 + "<b>yyyyyyyyyy</b>"

    problem = channel.problem(OutgoingMessage(text, format="html"))
    await send_to(channel, ann, text, format="html")

    assert problem is None
    assert ann.messages[0].text == "x" * 3990 + "y" * 10
    assert ann.messages[0].markup == ()


def test_a_text_whose_links_do_not_fit_is_refused(channel):
    text = "x" * 3990 + '<a href="https://shop.example/">y</a>'

    problem = channel.problem(OutgoingMessage(text, format="html"))

    assert problem == "text: must be at most 4000 UTF-16 code units with its links on this channel"


def rows(*widths: int, url: str | None = None) -> tuple[tuple[Button, ...], ...]:
    button = Button("x", url=url) if url else Button("x", data="d")
    return tuple((button,) * width for width in widths)


@pytest.mark.parametrize(
    ("buttons", "problem"),
    [
        (rows(*[7] * 30), None),
        (rows(3, url="https://shop.example"), None),
        (rows(*[1] * 31), "buttons: must be at most 30 rows"),
        (rows(1, 8), "buttons[1]: must be 1-7 buttons on"),
        (rows(4, url="https://shop.example"), "buttons[0]: must be 1-3 buttons with a link"),
        (((),), "buttons[0]: "),
        (((Button("", data="x"),),), "buttons[0][0].text: "),
        (((Button("x" * 129, data="x"),),), "buttons[0][0].text: "),
        (((Button("x", data="x" * 1025),),), "buttons[0][0].data: "),
        (((Button("x", url="https://" + "x" * 2048),),), "buttons[0][0].url: "),
    ],
)
async def test_a_keyboard_is_sent_whole_or_refused(channel, ann, buttons, problem):
    message = OutgoingMessage("Choose", buttons=buttons)

    if problem is None:
        assert channel.problem(message) is None
        await channel.send(str(ann.chat_id), message)
        assert [len(row) for row in ann.messages[0].buttons] == [len(row) for row in buttons]
    else:
        assert channel.problem(message).startswith(problem)


def test_markup_that_shows_nothing_is_refused_unless_there_is_a_file(channel):
    nothing = OutgoingMessage("<b></b>", format="html")
    picture = OutgoingMessage("<b></b>", format="html", media=Media("image", "https://x.example/p"))

    assert channel.problem(nothing).startswith("text: ")
    assert channel.problem(picture) is None
