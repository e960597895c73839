"""Options as lines of a box of the builder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgsvc_forms.dashboard.options import from_lines, to_lines
from msgsvc_forms.fields import Option

texts = (
    st.text(st.sampled_from("ab|\\n\n\r\u2028 é"), min_size=1, max_size=12)
    .map(str.strip)
    .filter(bool)
)
labels = st.one_of(
    texts, st.dictionaries(st.sampled_from(("en", "ru")), texts, min_size=1).map(dict)
)


@given(st.lists(st.one_of(texts, st.tuples(texts, labels))))
def test_lines_say_what_the_options_are(given_options: list[object]) -> None:
    options = [
        one if isinstance(one, str) else Option.model_construct(value=one[0], label=one[1])  # type: ignore[index]
        for one in given_options
    ]

    read = from_lines(to_lines(options))

    assert read == [
        one if isinstance(one, str) else {"value": one.value, "label": one.label} for one in options
    ]


@pytest.mark.parametrize(
    ("line", "option"),
    [
        (r"C:\dir", r"C:\dir"),
        ("s|Small", {"value": "s", "label": "Small"}),
        ("s | | Мал", {"value": "s", "label": {"ru": "Мал"}}),
        ("s | |", {"value": "s", "label": "s"}),
        ("s | a | b | c", {"value": "s", "label": ["a", "b", "c"]}),
        ("s\\", "s\\"),
    ],
)
def test_what_people_write_is_read(line: str, option: object) -> None:
    assert from_lines(f"\n {line} \n\n") == [option]
