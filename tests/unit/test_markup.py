"""How the formats of a message are read: what is escaped, and what is code, is no mark."""

import pytest

from msgsvc_core.content.markup import Span, to_spans

MARKDOWN = {
    "an escaped mark ends nothing": (r"*a\* b*", [Span("a* b", ("italic",))]),
    "an escaped space stands at an edge": (r"**\ a\ **", [Span(" a ", ("bold",))]),
    "an escaped backslash escapes nothing": (r"*a\\*", [Span("a\\", ("italic",))]),
    "a bracket in a link's text": (
        r"[a\]b](https://shop.example)",
        [Span("a]b", (), "https://shop.example")],
    ),
    "a mark inside code": (
        "**a `**` b**",
        [Span("a ", ("bold",)), Span("**", ("bold", "code")), Span(" b", ("bold",))],
    ),
    "an open mark before code": ("**`a**`", [Span("**"), Span("a**", ("code",))]),
}


@pytest.mark.parametrize(("text", "spans"), MARKDOWN.values(), ids=MARKDOWN)
def test_markdown_is_read_as_it_is_meant(text: str, spans: list[Span]) -> None:
    assert to_spans(text, "markdown") == spans
