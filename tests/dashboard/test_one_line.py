"""What is shown in a form to be changed, and sent in as it stands, is what it was."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgsvc_core.dashboard.one_line import from_line, to_line
from msgsvc_core.dashboard.posted import PostedForm
from msgsvc_core.dashboard.writing import MessageForm

TEXTS = st.text(alphabet=" \\\n\t|=nst\u00a0x\u2028")


@given(TEXTS, st.sampled_from(["", "|"]))
def test_a_text_stands_on_one_line_and_comes_back(text: str, apart: str) -> None:
    line = to_line(text, apart=apart)

    assert "\n" not in line
    assert from_line(f" {line} ", apart=apart) == text


@pytest.mark.parametrize(("line", "text"), [("C:\\temp", "C:\\temp"), ("a\\", "a\\"), (" x ", "x")])
def test_what_is_no_sign_is_only_itself(line: str, text: str) -> None:
    assert from_line(line) == text


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), TEXTS, min_size=1))
def test_values_of_a_template_come_back(values: dict[str, str]) -> None:
    assert sent_in_again({"template": "order", "variables": values})["variables"] == values


def test_true_false_and_numbers_come_back_as_people_read_them() -> None:
    values = {"paid": True, "late": False, "price": 3.5, "count": 2}

    again = sent_in_again({"template": "order", "variables": values})["variables"]

    assert again == {"paid": "true", "late": "false", "price": "3.5", "count": "2"}


def sent_in_again(message: dict[str, Any]) -> dict[str, Any]:
    """Through the form, as a browser sends it."""
    shown = MessageForm.values_of(message)
    texts = {
        name: [each.replace("\n", "\r\n") for each in values] for name, values in shown.items()
    }
    return MessageForm(PostedForm(texts)).message()
