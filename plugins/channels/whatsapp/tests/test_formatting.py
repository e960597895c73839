"""Texts in WhatsApp's markup, as a reader of it shows them."""

import pytest

from msgsvc_core.content.markup import Span, to_spans
from msgsvc_devkit.platforms.whatsapp.markup import read_text
from msgsvc_whatsapp.formatting import JOINER, written


def look(text: str, text_format="html") -> list[tuple[str, str]]:
    return read_text(written(to_spans(text, text_format), 4096).text)[1]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<b>bold</b>", "*bold*"),
        ("<i>a b</i>, c", "_a b_, c"),
        ("<s>gone</s>", "~gone~"),
        ("<code>x = 1</code>", "```x = 1```"),
        ("<b>a <i>b</i></b>", "*a* *_b_*"),
        ("<b> a </b>b", " *a* b"),
        ("<b>one\ntwo</b>", "*one*\n*two*"),
        ("<u>under</u>", "under"),
        ('<a href="https://x.example">site</a>.', "site (https://x.example)."),
        ('<a href="https://x.example">https://x.example</a>', "https://x.example"),
        # What would not be taken for markup, or for other markup, is plain.
        ("un<b>believ</b>able", "unbelievable"),
        ("<b>2*3</b>", "2*3"),
        ("<code>a`b</code>", "aˋb"),
        ("<b>a</b><i>b</i>", "ab"),
    ],
)
def test_markup_is_written_where_it_counts(html, text):
    assert written(to_spans(html, "html"), 4096).text == text


@pytest.mark.parametrize(
    "text",
    [
        "*a*",
        "_a_ and ~b~",
        "(*a*)",
        "say: *a*",
        "`a`",
        "```a```",
        "* a\n- b\n> c\n1. d",
        "**a**",
        "__init__",
    ],
)
def test_a_plain_text_has_no_markup(text):
    shown, looks = read_text(written([Span(text)], 4096).text)

    assert looks == []
    assert shown.replace(JOINER, "").replace("ˋ", "`") == text


def test_a_text_without_signs_is_left_alone():
    text = "Hello, 2*3 snake_case a~b 1.5 - x"

    assert written([Span(text)], 4096).text == text


def test_too_much_markup_is_left_out():
    text = written([Span("x", ("bold",)), Span(" ")] * 1300, 4000)

    assert "*" not in text.text
    assert {span.marks for span in text.spans} == {()}


def test_the_fake_reads_nested_markup():
    assert look("<b>a</b> <i>b <s>c</s></i>") == [
        ("bold", "a"),
        ("italic", "b"),
        ("strikethrough", "c"),
        ("italic", "c"),
    ]
