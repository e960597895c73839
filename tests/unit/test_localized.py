"""Texts per language, as bodies may hold them."""

from typing import Annotated, Any

import pytest

from msgsvc_core.api.endpoint import Body
from msgsvc_core.api.validation import validate
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.i18n import Localized, in_language, visible


class Thing(Body):
    title: Annotated[Localized, visible(5)]
    note: Annotated[Localized, visible(5)] | None = None


@pytest.mark.parametrize("text", ["x", "12345", {"en": "Sale"}, {"en": "Sale", "ru": "Скидк"}])
def test_a_text_or_one_per_language_is_taken_as_it_is(text: Any) -> None:
    assert validate(Thing, {"title": text, "note": text}).title == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must hold more than spaces and invisible characters"),
        (" \t", "must hold more than spaces and invisible characters"),
        ("123456", "must be at most 5 characters"),
        ({}, "give a text, or one for en or ru"),
        ({"en": "x", "ru": ""}, "must hold more than spaces and invisible characters"),
        ({"ru": "123456"}, "must be at most 5 characters"),
        (7, "must be a text, or an object of texts by en and ru"),
        (None, "must be a text, or an object of texts by en and ru"),
        ({"de": "x"}, "must be a text, or an object of texts by en and ru"),
        ({"ru": 7}, "must be a text, or an object of texts by en and ru"),
    ],
)
def test_what_is_no_text_is_refused_with_one_reason(text: Any, why: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        validate(Thing, {"title": text})

    assert refused.value.message == f"title: {why}"


def test_an_optional_text_names_its_field_too() -> None:
    with pytest.raises(ValidationFailed) as refused:
        validate(Thing, {"title": "x", "note": {"ru": 7}})

    assert refused.value.message == "note: must be a text, or an object of texts by en and ru"


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Sale", "ru", "Sale"),
        ({"en": "Sale", "ru": "Скидки"}, "ru", "Скидки"),
        ({"en": "Sale"}, "ru", "Sale"),
        ({"ru": "Скидки"}, "en", "Скидки"),
    ],
)
def test_a_person_reads_their_language_or_what_there_is(
    text: Localized, lang: str, expected: str
) -> None:
    assert in_language(text, lang, "en") == expected
