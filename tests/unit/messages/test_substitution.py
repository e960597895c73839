"""Templates of texts: what is one, and what values can and can't do."""

import time
from itertools import groupby
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msgsvc_core.content.markup import Mark, Span, joined, to_html, to_spans
from msgsvc_core.content.outgoing import Format
from msgsvc_core.content.substitution import (
    MAX_PLACEHOLDERS,
    Template,
    TemplateError,
    TooLong,
    WrongVariable,
    address_template,
    names_in,
    plain_template,
    required_in,
    text_template,
    to_text,
)
from msgsvc_devkit.growth import growing

MOST = 4000

#: Seconds of the processor, that no other work on the machine counts in; a slip takes minutes.
MOST_S = 2.0


def rendered(text: str, text_format: Format = "plain", **values: str) -> str:
    return text_template(text, text_format).render(values, MOST)


def seen(text: str, text_format: Format, **values: str) -> list[Span]:
    """What people see of a template with these values."""
    return to_spans(*text_template(text, text_format).render_text(values, MOST))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Hi {{ name }}!", "Hi Ann!"),
        ("{{name}}{{ name }}", "AnnAnn"),
        ("{{\n name\t}}", "Ann"),
        ('{{ nick | default("you") }}', "you"),
        ('{{ name | default("you") }}', "Ann"),
        ('{{nick|default( "" )}}.', "."),
        (r'{{ nick | default("\"{{ name }}\" \\") }}', '"{{ name }}" \\'),
        ("no variable", "no variable"),
        ("{ name } }} {", "{ name } }} {"),
    ],
)
def test_a_variable_is_replaced_by_its_value_or_default(text: str, shown: str) -> None:
    assert rendered(text, name="Ann") == shown


@pytest.mark.parametrize("text_format", get_args(Format))
def test_templates_are_parsed_in_time_linear_in_their_length(text_format: Format) -> None:
    """The words that stand for placeholders while a text is parsed are among what it is made of."""
    words = ["q", "zq", "zqq{{a}}", "zq0q", "zq0q0x{{a}}", "z{{a}}q0q", "0x{{a}}", "{{a}}"]
    marks = ["*{{a}}* ", "<b>{{a}}</b>", "[{{a}}](https://a.example/{{a}})", "`{{a}}", "]({{a}}"]
    links = ['<a href="https://a.example/{{a}}">', '<a href="{{a}}', "&{{a}}", "\\{{a}}", "{{a}}\n"]

    def parse(text: str) -> None:
        template = text_template(text, text_format)
        template.render_text({"a": "*"}, 16_000)

    found = growing(parse, words + marks + links, sizes=(4_000, 16_000))

    assert found == []


@pytest.mark.parametrize("text_format", get_args(Format))
def test_a_text_may_hold_the_words_that_stand_for_placeholders(text_format: Format) -> None:
    text = "zq0q0x {{ a }} zq0q1x zq1q {{ b }} zq0q"

    assert rendered(text, text_format, a="1", b="2") == "zq0q0x 1 zq0q1x zq1q 2 zq0q"


def test_a_text_has_a_bounded_number_of_placeholders() -> None:
    assert len(plain_template("{{a}}" * MAX_PLACEHOLDERS).holes) == MAX_PLACEHOLDERS
    with pytest.raises(TemplateError, match="at most 1000 placeholders"):
        plain_template("{{a}}" * (MAX_PLACEHOLDERS + 1))


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("{{", 1),
        ("Hi {{ name }", 4),
        ("{{ }}", 1),
        ("{{ 1st }}", 1),
        ("{{ first name }}", 1),
        ("{{ name.first }}", 1),
        ("{{ name | upper }}", 1),
        ("{{ name | default('x') }}", 1),
        ('{{ name | default("x) }}', 1),
        (r'{{ name | default("\n") }}', 1),
        ("{{ " + "x" * 65 + " }}", 1),
        ("{{ 7 * 7 }}", 1),
        ("{{{ name }}}", 1),
        ("{{ name }} {{ x", 12),
    ],
)
def test_what_is_no_variable_is_refused_with_its_place(text: str, character: int) -> None:
    with pytest.raises(TemplateError, match=f"^at character {character}: "):
        text_template(text, "plain")


def test_a_value_that_holds_braces_is_not_rendered_again() -> None:
    assert rendered("{{ a }}", a="{{ b }}", b="secret") == "{{ b }}"


def test_a_missing_variable_is_an_error_and_no_hole() -> None:
    with pytest.raises(WrongVariable, match="name: is required by the template"):
        rendered("Hi {{ name }}!", nick="Ann")


def test_names_come_in_their_order_and_are_required_without_a_default_everywhere() -> None:
    templates = [
        plain_template('{{ b }} {{ a | default("x") }} {{ c }}'),
        plain_template('{{ c | default("x") }} {{ d }}'),
    ]

    assert names_in(templates) == ["b", "a", "c", "d"]
    assert required_in(templates) == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (7, "7"), (1.5, "1.5"), ("7 ", "7 "), (2**63, str(2**63))],
)
def test_values_read_as_in_json(value: str | float | bool, text: str) -> None:
    assert to_text(value) == text


def test_a_thousand_holes_for_a_megabyte_stay_within_the_bound() -> None:
    began_s = time.thread_time()

    with pytest.raises(TooLong):
        rendered("{{a}}" * 800, "html", a="&" * 1_000_000)

    assert time.thread_time() - began_s < MOST_S


@pytest.mark.parametrize(
    "text",
    [
        "{{" * 50_000,
        '{{a|default("' * 10_000,
        "{{a" + " " * 100_000,
        '{{a|default("' + "\\" * 99_999,
    ],
)
def test_a_hostile_template_is_read_in_linear_time(text: str) -> None:
    began_s = time.thread_time()

    with pytest.raises(TemplateError):
        plain_template(text)

    assert time.thread_time() - began_s < MOST_S


# ---- markup ----------------------------------------------------------------------------------------

EVIL = "*b* [x](https://evil.example) `c` <a href='https://evil.example'>y</a> _i_ ~~s~~ &lt; \\"


@pytest.mark.parametrize(
    ("text", "text_format", "looks"),
    [
        ("Hi **{{ a }}**", "markdown", [Span("Hi "), Span(EVIL, ("bold",))]),
        ("*{{ a }}* {{ a }}", "markdown", [Span(EVIL, ("italic",)), Span(" " + EVIL)]),
        ("`{{ a }}`", "markdown", [Span(EVIL, ("code",))]),
        ("```\n{{ a }}\n```", "markdown", [Span(EVIL, ("pre",))]),
        ("[{{ a }}](https://shop.example)", "markdown", [Span(EVIL, (), "https://shop.example")]),
        ("Hi <b>{{ a }}</b>", "html", [Span("Hi "), Span(EVIL, ("bold",))]),
        (
            '<a href="https://shop.example">{{ a }}</a>',
            "html",
            [Span(EVIL, (), "https://shop.example")],
        ),
    ],
)
def test_a_value_can_t_become_markup(text: str, text_format: Format, looks: list[Span]) -> None:
    assert seen(text, text_format, a=EVIL) == looks


@pytest.mark.parametrize(
    ("text", "text_format", "value", "looks"),
    [
        ("`{{ a }}", "markdown", "x`", [Span("`x`")]),
        ("a ` b {{ a }} c", "markdown", "`", [Span("a ` b ` c")]),
        ("*{{ a }}", "markdown", "x*", [Span("*x*")]),
        ("**{{ a }}** b **c**", "markdown", "", [Span(" b "), Span("c", ("bold",))]),
        ('**{{ a | default("x") }}** b', "markdown", "", [Span(" b")]),
        ("[{{ a }}](https://shop.example)", "markdown", "", []),
        ("```\n{{ a }}```", "markdown", "x\n```\ny", [Span("x\n```\ny", ("pre",))]),
        ("`{{ a }}`", "markdown", "x`\ny", [Span("x`\ny", ("code",))]),
        ("{{ a }}_b_", "markdown", "!", [Span("!_b_")]),
        ("&{{ a }}", "html", "lt;b&gt;", [Span("&lt;b&gt;")]),
        ("&{{ a }};", "html", "lt", [Span("&lt;")]),
        ("&#{{ a }};", "html", "60", [Span("&#60;")]),
        ("&l{{ a }}", "html", "t;i", [Span("&lt;i")]),
        ("<style>{{ a }}</style>", "html", "</style><b>x</b>", [Span("</style><b>x</b>")]),
        ("a < {{ a }} >", "html", "b", [Span("a < b >")]),
    ],
)
def test_a_value_is_shown_as_it_is_whatever_stands_before(
    text: str, text_format: Format, value: str, looks: list[Span]
) -> None:
    assert seen(text, text_format, a=value) == looks


def test_a_text_stays_in_its_format_where_that_can_say_it() -> None:
    template = text_template("a *b* `{{ a }}`", "markdown")

    assert template.render_text({"a": "_x_"}, MOST) == ("a *b* `_x_`", "markdown")
    assert template.render_text({"a": "`x`"}, MOST) == ("a <i>b</i> <code>`x`</code>", "html")


def test_a_text_that_is_written_anew_keeps_to_the_bound() -> None:
    with pytest.raises(TooLong):
        text_template("`{{ a }}", "markdown").render_text({"a": "`" + "&" * 100}, 300)


@pytest.mark.parametrize(
    ("text", "text_format"),
    [
        ("[orders](https://shop.example/{{ a }}?q={{ a }})", "markdown"),
        ('<a href="https://shop.example/{{ a }}?q={{ a }}">orders</a>', "html"),
    ],
)
def test_in_a_link_a_value_is_percent_encoded(text: str, text_format: Format) -> None:
    spans = seen(text, text_format, a='/x" )?&#й')

    encoded = "%2Fx%22%20%29%3F%26%23%D0%B9"
    assert spans == [Span("orders", (), f"https://shop.example/{encoded}?q={encoded}")]


@pytest.mark.parametrize(
    ("text", "text_format"),
    [
        ("[x]({{ a }})", "markdown"),
        ("[x](https://{{ a }}/)", "markdown"),
        ("[x](https://shop.example{{ a }})", "markdown"),
        ("\\{{ a }}", "markdown"),
        ("<{{ a }}>x", "html"),
        ("<b {{ a }}>x</b>", "html"),
        ("<!-- {{ a }} --> x", "html"),
        ('<a href="{{ a }}">x</a>', "html"),
        ('<a href="https://{{ a }}/">x</a>', "html"),
    ],
)
def test_a_variable_in_the_markup_itself_is_refused(text: str, text_format: Format) -> None:
    with pytest.raises(TemplateError):
        text_template(text, text_format)


VALUES = st.text(st.sampled_from("ab \n\\`*_~[]()<>&\"'/:.#;!-=")) | st.sampled_from(
    [
        EVIL,
        "](https://evil.example)",
        '" href=https://evil.example ',
        "b",
        "a href=https://e.x",
        "--",
    ]
)
MARKDOWN = (
    "{{a}}",
    "{{b}}",
    "**",
    "*",
    "`",
    "```",
    "~~",
    "[",
    "](https://shop.example/",
    "](",
    ")",
)
HTML = (
    "{{a}}",
    "{{b}}",
    "<b>",
    "</b>",
    "<code>",
    "</code>",
    '<a href="https://shop.example/',
    '">',
)
TAGS = ("</a>", "<", ">", "&", ";", "<a title='", "'", '"', "<!", "--", "<!--", "</")
USUAL = ("{{a}}", "**{{a}}**", "*{{b}}*", "~~{{b}}~~", "[{{a}}](https://shop.example/x)", "`{{b}}`")


def templates(*fragments: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from((*fragments, "x", " ", "\n", "\\")), max_size=12).map("".join)


@settings(max_examples=150, deadline=None)  # other work on the machine
@given(text=templates(*MARKDOWN), a=VALUES, b=VALUES)
def test_no_value_makes_a_link_in_markdown(text: str, a: str, b: str) -> None:
    check_links(text, "markdown", a, b)


@settings(max_examples=150, deadline=None)  # other work on the machine
@given(text=templates(*HTML, *TAGS), a=VALUES, b=VALUES)
def test_no_value_makes_a_link_in_html(text: str, a: str, b: str) -> None:
    check_links(text, "html", a, b)


def check_links(text: str, text_format: Format, a: str, b: str) -> None:
    """Every link leads to the shop, the template's own host."""
    try:
        spans = seen(text, text_format, a=a, b=b)
    except (TemplateError, WrongVariable, TooLong):
        return
    hrefs = [span.href for span in spans if span.href]
    assert all(href.startswith("https://shop.example/") for href in hrefs), spans


#: Signs beside variables that stand open, or mean something with what follows.
STRAY = (
    "`",
    "``",
    "*",
    "_",
    "~",
    "&",
    "&l",
    "&#",
    "&#x",
    "&amp",
    "<",
    "</",
    "[",
    "]",
    "(",
    "!",
    ";",
)
FILLED = VALUES | st.sampled_from(
    ["", "lt;", "#60;", "t", "lt", "x*", "_x", "`", "x`", "b>", "```"]
)


@settings(max_examples=200, deadline=None)  # other work on the machine
@given(text=templates(*MARKDOWN, *STRAY, *USUAL), a=FILLED, b=FILLED)
@example(text="_****_**{{a}}**", a="", b="")
def test_values_are_literal_in_any_markdown(text: str, a: str, b: str) -> None:
    check_literal(text, "markdown", a, b)


@settings(max_examples=200, deadline=None)  # other work on the machine
@given(text=templates(*HTML, *TAGS, *STRAY), a=FILLED, b=FILLED)
def test_values_are_literal_in_any_html(text: str, a: str, b: str) -> None:
    check_literal(text, "html", a, b)


def check_literal(text: str, text_format: Format, a: str, b: str) -> None:
    """What people see is what they see with a word in each hole, with the values in its place: as many
    spans, which look alike and begin where they did."""
    try:
        shown = seen(text, text_format, a=a, b=b)
        words = seen(text, text_format, a="AAA", b="BBB")
    except (TemplateError, WrongVariable, TooLong):
        return
    filled = [
        (
            span.text.replace("AAA", "\0").replace("BBB", b).replace("\0", a),
            span.marks,
            bool(span.href),
        )
        for span in words
    ]
    expected = [
        ("".join(text for text, _, _ in alike), *look)
        for look, alike in groupby(
            (one for one in filled if one[0]), key=lambda one: (one[1], one[2])
        )
    ]
    by_link = [(span.text, span.marks, bool(span.href)) for span in shown]
    merged = [
        ("".join(text for text, _, _ in alike), *look)
        for look, alike in groupby(by_link, key=lambda one: (one[1], one[2]))
    ]
    assert merged == expected


@settings(max_examples=150, deadline=None)  # other work on the machine
@given(
    spans=st.lists(
        st.builds(
            Span,
            st.text(st.sampled_from("ab \n&;<>/\"'`*l#"), min_size=1),
            st.lists(st.sampled_from(get_args(Mark)), unique=True, max_size=3).map(tuple),
            st.none() | st.sampled_from(["https://shop.example/?a=1&lt=2", "http://a/'\"<>"]),
        )
    )
)
def test_html_reads_as_the_spans_that_it_was_written_from(spans: list[Span]) -> None:
    assert to_spans(to_html(spans), "html") == joined(spans)


@settings(max_examples=150, deadline=None)  # other work on the machine
@given(
    fragments=st.lists(st.sampled_from((*USUAL, "x ", "\n", " ")), max_size=8),
    a=VALUES.filter(bool),
    b=VALUES.filter(bool),
)
def test_markdown_looks_the_same_whatever_the_values(fragments: list[str], a: str, b: str) -> None:
    template = " ".join(fragments)
    shown = seen(template, "markdown", a=a, b=b)

    usual = seen(template, "markdown", a="AAA", b="BBB")
    expected = [
        Span(span.text.replace("AAA", a).replace("BBB", b), span.marks, span.href) for span in usual
    ]
    assert shown == expected


# ---- addresses -------------------------------------------------------------------------------------


def test_in_an_address_a_value_stays_where_it_is_put() -> None:
    template = address_template("https://shop.example/o/{{ id }}?from={{ from }}#{{ part }}")

    address = template.render({"id": "../a/b", "from": "x&y=1#z", "part": "й \\"}, MOST)

    expected = "https://shop.example/o/..%2Fa%2Fb?from=x%26y%3D1%23z#%D0%B9%20%5C"
    assert address == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{ a }}",
        "{{ a }}://shop.example/",
        "https://{{ a }}",
        "https://{{ a }}.example/x",
        "https://shop.example:{{ a }}/x",
        "https://{{ a }}@shop.example/x",
        "https://shop.example{{ a }}/x",
        "//{{ a }}/x",
        "javascript:{{ a }}",
        "https://[{{ a }}]/",
    ],
)
def test_scheme_and_host_of_an_address_can_t_be_variables(text: str) -> None:
    with pytest.raises(TemplateError):
        address_template(text)


@pytest.mark.parametrize("value", [".", "..", "..."])
def test_a_value_can_t_lead_up_the_path(value: str) -> None:
    with pytest.raises(WrongVariable, match="a: "):
        address_template("https://shop.example/a/{{ a }}").render({"a": value}, MOST)


@settings(deadline=None)  # other work on the machine
@given(value=st.text())
def test_no_value_changes_what_comes_before_it_in_an_address(value: str) -> None:
    template: Template = address_template("https://shop.example/o/{{ a }}/end")
    try:
        address = template.render({"a": value}, MOST)
    except WrongVariable:
        assert value.strip(".") == ""
        return
    head, _, tail = address.partition("/o/")
    assert head == "https://shop.example"
    assert tail.count("/") == 1
    assert address.isascii()
