"""Whole numbers that anybody may have written."""

import pytest

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.kernel.values import whole_number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("9" * 15, 10**15 - 1),
        ("9" * 16, None),
        ("9" * 5000, None),
        ("", None),
        ("-1", None),
        (" 1", None),
        ("1.0", None),
        ("²", None),
        ("٣", None),
    ],
)
def test_plain_digits_are_a_number(text: str, number: int | None) -> None:
    assert whole_number(text) == number


def test_what_is_no_number_in_a_form_stays_as_it_is() -> None:
    form = PostedForm({"pace": [" 30 "], "delay": ["soon"], "days": ["9" * 5000]})

    assert [form.number(name) for name in ("pace", "delay", "days", "none")] == [
        30,
        "soon",
        "9" * 5000,
        "",
    ]
