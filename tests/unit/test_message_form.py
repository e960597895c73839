"""The form of a message: what its fields come to, and that a message comes back from them as it was."""

from typing import Any

import pytest

from msgsvc_core.dashboard import PostedForm
from msgsvc_core.dashboard.writing import MessageForm

WHOLE: dict[str, Any] = {
    "text": {"en": "Hi", "ru": "Привет", "pt-BR": "Olá"},
    "format": "markdown",
    "media": {"type": "document", "url": "https://a.example/{{ n }}.pdf", "filename": "n.pdf"},
    "buttons": [
        [
            {"text": {"en": "Yes", "ru": "Да"}, "data": "yes"},
            {"text": "No", "data": "no", "style": "danger"},
        ],
        [{"text": "Shop", "url": "https://a.example"}],
    ],
    "variables": {"code": "SUMMER"},
    "permission": "news",
    "silent": True,
    "expires_in": 5400,
}


def form(**fields: str) -> PostedForm:
    return PostedForm({name: [text] for name, text in fields.items()})


@pytest.mark.parametrize(
    "message",
    [
        WHOLE,
        {"text": "Hi", "format": "plain", "buttons": []},
        {"text": {"ru": "Привет"}, "format": "plain", "buttons": []},
        {"template": "order", "variables": {"a": "1"}},
    ],
    ids=["all of it", "a text", "one language", "a template"],
)
def test_a_message_comes_back_from_its_form(message: dict[str, Any]) -> None:
    filled = PostedForm(MessageForm.values_of(message))

    assert MessageForm(filled).message() == message
    assert MessageForm(filled).is_written


def test_a_prefix_tells_messages_apart_and_options_are_the_same_for_all() -> None:
    values = {
        **MessageForm.values_of(WHOLE),
        "b_text": ["Other"],
        "b_button_text_1": ["Open"],
        "b_button_url_1": ["https://b.example"],
    }
    first, second, third = (MessageForm(PostedForm(values), prefix) for prefix in ("", "b_", "c_"))

    assert first.source()["text"] == WHOLE["text"]
    assert second.source() == {
        "text": "Other",
        "format": "plain",
        "buttons": [[{"text": "Open", "url": "https://b.example"}]],
    }
    assert second.options() == {"permission": "news", "silent": True, "expires_in": 5400}
    assert [each.is_written for each in (first, second, third)] == [True, True, False]


def test_a_file_without_an_address_and_buttons_without_anything_are_left_out() -> None:
    written = form(text="Hi", media_type="video", media_url=" ", button_beside_2="1")

    assert MessageForm(written).content() == {"text": "Hi", "format": "plain", "buttons": []}


@pytest.mark.parametrize(
    "fields", [{}, {"written": "template"}, {"written": "text", "format": "html"}]
)
def test_a_form_without_text_and_template_is_not_written(fields: dict[str, str]) -> None:
    assert not MessageForm(form(**fields)).is_written


def test_its_fields_are_those_that_it_reads() -> None:
    read = MessageForm(PostedForm(MessageForm.values_of(WHOLE))).message()

    assert {*read, "template"} == set(MessageForm.FIELDS)
