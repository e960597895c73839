"""The format `rich`: what is read, what is written, and what platforms without blocks get."""

import random
import re

import pytest

from msgsvc_core.content.blocks import MAX_NESTING, from_rich, size_of, spans_of, to_rich
from msgsvc_core.content.links import urls_of, with_urls
from msgsvc_core.content.markup import to_spans
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import text_template

TAGS = (
    *("p", "h1", "ul", "ol", "li", "table", "tr", "td", "th", "blockquote", "pre", "hr", "b", "i"),
    *("a", "br", "div"),
)


def shown(text: str) -> str:
    return "".join(span.text for span in to_spans(text, "rich"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<h1>Order</h1>Hi", "Order\n\nHi"),
        ("Hi\nAnn", "Hi\nAnn"),
        ("<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>", "• a\n• b"),
        ("<ol><li>a<li>b</ol>", "1. a\n2. b"),
        ("<ul><li>a<ul><li>b</li></ul></li></ul>", "• a\n  • b"),
        ("<ol><li>a<br>b</li></ol>", "1. a\n   b"),
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>c</td></tr></table>", "a | b\nc"),
        ("<table><td>a<p>b</p></td></table>", "a b"),
        ("<table><td>a<ul><li>x</li><li>y</li></ul></td></table>", "a x y"),
        ("<table><td>a<blockquote>b</blockquote></td></table>", "a b"),
        ("a<hr>b", "a\n\n———\n\nb"),
        ("<blockquote>a<br>b</blockquote>", "> a\n> b"),
        ("<pre>\nx = 1\n\ny\n</pre>", "x = 1\n\ny"),
        ("<li>a", "a"),
        ("<div>a</div>", "a"),
        ("1 < 2 &amp; 3", "1 < 2 & 3"),
    ],
)
def test_blocks_are_lines_of_the_text(text: str, lines: str) -> None:
    assert shown(text) == lines


@pytest.mark.parametrize("seed", range(20))
def test_any_text_keeps_its_characters_and_can_be_written(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        pieces = [f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS]
        pieces += ["x", "y z", " ", "\n", "q&amp;"] * 4
        text = "".join(chance.choices(pieces, k=chance.randrange(16)))
        blocks = from_rich(text)

        assert from_rich(to_rich(blocks)) == blocks, text
        wanted = re.sub(r"<[^>]*>|\s", "", text).replace("&amp;", "&")
        kept = "".join(span.text for spans in spans_of(blocks) for span in spans)
        assert re.sub(r"\s", "", kept) == wanted, text
        size_of(blocks)


def test_blocks_are_nested_to_a_limit() -> None:
    (block,) = from_rich("<blockquote>" * 1000 + "x")

    assert size_of((block,)).levels == MAX_NESTING + 1


def test_links_are_replaced_and_blocks_stay() -> None:
    text = (
        '<ul><li><a href="https://a.example/x">x</a></li></ul><pre>https://a.example/code</pre>'
        "<table><tr><td>https://a.example/y</td></tr></table>"
    )
    message = OutgoingMessage(text, "rich")
    assert urls_of(message) == ["https://a.example/x", "https://a.example/y"]

    tracked = with_urls(message, lambda url: url.replace("a.example", "t.example"))

    assert tracked.format == "rich"
    assert tracked.text == text.replace("a.example/x", "t.example/x").replace(
        "a.example/y", "t.example/y"
    )
    assert with_urls(message, lambda url: None) == message


@pytest.mark.parametrize("value", ["Tea", "<b>x</b>", "</td></tr></table>", "a\nb", "&lt;", ""])
def test_values_of_a_template_are_text_in_every_block(value: str) -> None:
    text = (
        "<h2>{{ name }}</h2><table><tr><td>{{ name }}!</td></tr></table><ul><li>- {{ name }}</ul>"
    )
    rendered, text_format = text_template(text, "rich").render_text({"name": value}, 4000)

    head = f"{value}\n\n" if value else ""
    assert text_format == "rich"
    assert shown(rendered).replace("\n  ", "\n") == f"{head}{value}!\n\n• - {value}".strip()


def test_a_value_completes_no_reference() -> None:
    template = text_template("<h1>Tom &am{{name}}</h1>", "rich")

    rendered, text_format = template.render_text({"name": "p; x"}, 4000)

    assert "".join(span.text for span in to_spans(rendered, text_format)) == "Tom &amp; x"


def test_links_that_are_listed_are_those_that_are_tracked() -> None:
    text = "<h1>https://a.example/<b>sale</b></h1><h2>https://b.example/</h2>"
    message = OutgoingMessage(text, "rich")

    tracked = with_urls(message, lambda url: f"https://t.example/?{url}")

    # Of the first, messengers make a link to another page than the text before the mark names.
    assert urls_of(message) == ["https://b.example/"]
    assert tracked.text.count("t.example") == 1
