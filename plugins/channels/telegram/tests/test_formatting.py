"""Three formats as Telegram's text and entities."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgsvc_core.content.markup import visible_length
from msgsvc_devkit.platforms.telegram.looks import check_entities
from msgsvc_telegram.formatting import formatted, too_many_entities


def entity(kind: str, offset: int, length: int, **more: str) -> dict[str, object]:
    return {"type": kind, "offset": offset, "length": length, **more}


@pytest.mark.parametrize(
    ("text", "text_format", "shown", "entities"),
    [
        ("**a** < & _b", "plain", "**a** < & _b", []),
        ("**bold** and _it_", "markdown", "bold and it", [("bold", 0, 4), ("italic", 9, 2)]),
        ("~~no~~ `x*y*`", "markdown", "no x*y*", [("strikethrough", 0, 2), ("code", 3, 4)]),
        ("<u>u</u><s>s</s>", "html", "us", [("underline", 0, 1), ("strikethrough", 1, 1)]),
        ("🎉 **is two**", "markdown", "🎉 is two", [("bold", 3, 6)]),
        ("👨‍👩‍👧**x**", "markdown", "👨‍👩‍👧x", [("bold", 8, 1)]),
        ("**a *b* c**", "markdown", "a b c", [("bold", 0, 5), ("italic", 2, 1)]),
        # One within the other, or apart: Telegram takes nothing else.
        (
            "<b>1<i>2</b>3</i>",
            "html",
            "123",
            [("bold", 0, 2), ("italic", 1, 1), ("italic", 2, 1)],
        ),
        # Code stands alone.
        ("**a `b` c**", "markdown", "a b c", [("bold", 0, 2), ("code", 2, 1), ("bold", 3, 2)]),
        ("<b>open", "html", "open", [("bold", 0, 4)]),
        ("<script>x</script>&lt;b&gt;", "html", "x<b>", []),
        ("* a *", "markdown", "* a *", []),
    ],
)
def test_each_format_becomes_text_and_entities(text, text_format, shown, entities):
    expected = [entity(*one) for one in entities]

    assert formatted(text, text_format) == (shown, expected)


def test_a_link_wins_over_code_and_stands_in_the_rest():
    link = {"url": "https://shop.example/?a=1&b=2"}

    code = formatted(f'<code><a href="{link["url"]}">x</a></code>', "html")[1]
    bold = formatted(f'<b><a href="{link["url"]}">x</a></b>', "html")[1]

    assert code == [entity("text_link", 0, 1, **link)]
    assert bold == [entity("bold", 0, 1), entity("text_link", 0, 1, **link)]


def test_a_link_that_leads_nowhere_safe_is_no_entity():
    assert formatted('<a href="javascript:alert(1)">x</a>', "html") == ("x", [])


def test_more_entities_than_telegram_shows_are_noticed():
    assert not too_many_entities("*a* " * 100, "markdown")
    assert too_many_entities("*a* " * 101, "markdown")
    assert not too_many_entities("*a* " * 101, "plain")


@settings(deadline=None)  # other work on the machine
@given(
    st.text(alphabet="*_`~[]()<>/bisuaprecodhtx:.&;\\ \n🎉é", max_size=80),
    st.sampled_from(["plain", "markdown", "html"]),
)
def test_whatever_is_written_entities_are_whole_nested_and_in_the_text(text, text_format):
    shown, entities = formatted(text, text_format)

    check_entities(shown, entities)
    assert visible_length(shown, "plain", "utf16") == visible_length(text, text_format, "utf16")
