"""Messages become spans: text with a look, and nothing that could run."""

import pytest

from msgsvc_core.content.outgoing import Format
from msgsvc_sandbox.formatting import to_spans
from msgsvc_sandbox.models import Span


def shown(text: str, text_format: Format) -> list[tuple[str, list[str], str | None]]:
    return [(span.text, list(span.marks), span.href) for span in to_spans(text, text_format)]


def test_plain_text_stays_as_it_is_written() -> None:
    assert shown("2 * 3 <b>*4*</b>", "plain") == [("2 * 3 <b>*4*</b>", [], None)]


@pytest.mark.parametrize("sign", ["**", "__", "*", "_", "~~"])
def test_marks_of_one_letter_end_at_the_next_sign(sign: str) -> None:
    letters = shown(f"{sign}a{sign} and {sign}b{sign}", "markdown")

    assert [text for text, marks, _ in letters if marks] == ["a", "b"]


@pytest.mark.parametrize("text_format", ["plain", "markdown", "html"])
def test_bare_addresses_become_links_without_the_full_stop_after_them(text_format: Format) -> None:
    address = "https://shop.example/a?b=1"

    assert shown(f"See {address}.", text_format) == [
        ("See ", [], None),
        (address, [], address),
        (".", [], None),
    ]


@pytest.mark.parametrize(
    ("markdown", "mark"),
    [
        ("**a b**", "bold"),
        ("__a b__", "bold"),
        ("*a b*", "italic"),
        ("_a b_", "italic"),
        ("~~a b~~", "strike"),
        ("`a b`", "code"),
        ("```\na b\n```", "pre"),
        ("```sh\na b\n```", "pre"),
    ],
)
def test_markdown_marks(markdown: str, mark: str) -> None:
    assert shown(markdown, "markdown") == [("a b", [mark], None)]


def test_markdown_nests_and_escapes() -> None:
    assert shown(r"**a *b*** \*c\*", "markdown") == [
        ("a ", ["bold"], None),
        ("b", ["bold", "italic"], None),
        (" *c*", [], None),
    ]


@pytest.mark.parametrize("text", ["snake_case_name", "2 * 3 * 4", "**open", "a ` b", "[x](y", "*"])
def test_markdown_without_meaning_is_shown_as_it_stands(text: str) -> None:
    assert shown(text, "markdown") == [(text, [], None)]


def test_markdown_links() -> None:
    assert shown("[the **shop**](https://shop.example)", "markdown") == [
        ("the **shop**", [], "https://shop.example")
    ]


@pytest.mark.parametrize("address", ["javascript:alert`1`", "data:text/html,x", "//x", "file:///x"])
def test_a_dangerous_address_is_no_link(address: str) -> None:
    markdown = to_spans(f"[x]({address})", "markdown")
    html = to_spans(f'<a href="{address}">x</a>', "html")

    assert [span.href for span in [*markdown, *html]] == [None] * len([*markdown, *html])
    assert html == [Span(text="x")]


@pytest.mark.parametrize(
    ("html", "spans"),
    [
        ("<b>a</b>", [("a", ["bold"], None)]),
        ("<i><u>a</u></i>", [("a", ["italic", "underline"], None)]),
        ("<s>a", [("a", ["strike"], None)]),
        ("a<br>b &lt;c&gt;", [("a\nb <c>", [], None)]),
        ("<pre>a  b</pre>", [("a  b", ["pre"], None)]),
        ("a</b>", [("a", [], None)]),
        ("<a href='https://x.example'>a</a>", [("a", [], "https://x.example")]),
        ("<blink onclick=alert(1)>a</blink>", [("a", [], None)]),
        ("<script>alert(1)</script>", [("alert(1)", [], None)]),
        ("<img src=x onerror=alert(1)>a", [("a", [], None)]),
    ],
)
def test_html_keeps_a_small_set_of_tags(
    html: str, spans: list[tuple[str, list[str], str | None]]
) -> None:
    assert shown(html, "html") == spans


def test_markup_that_is_nested_without_end_is_read_all_the_same() -> None:
    deep = "*_" * 500 + "x" + "_*" * 500

    assert "x" in "".join(span.text for span in to_spans(deep, "markdown"))
