"""Texts per language, as bodies may hold them."""

from functools import partial
from typing import Annotated, Any

import pytest
from babel.core import get_global

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import validate
from msgsvc_core.kernel import i18n
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.kernel.i18n import (
    Localized,
    canonical_tag,
    check_tag,
    closest,
    in_language,
    language_of,
    own_name,
    reported_tag,
    visible,
)
from msgsvc_core.pages.languages import preferred
from msgsvc_devkit.growth import growing


class Thing(RequestModel):
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
        (7, "must be a text, or an object of texts by en and ru (setting languages)"),
        (None, "must be a text, or an object of texts by en and ru (setting languages)"),
        ({"de": "x"}, "must be a text, or an object of texts by en and ru (setting languages)"),
        ({"ru": 7}, "must be a text, or an object of texts by en and ru (setting languages)"),
    ],
)
def test_what_is_no_text_is_refused_with_one_reason(text: Any, why: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        validate(Thing, {"title": text})

    assert refused.value.message == f"title: {why}"


def test_an_optional_text_names_its_field_too() -> None:
    with pytest.raises(ValidationFailed) as refused:
        validate(Thing, {"title": "x", "note": {"ru": 7}})

    assert (
        refused.value.message
        == "note: must be a text, or an object of texts by en and ru (setting languages)"
    )


@pytest.mark.parametrize(
    ("text", "lang", "expected"),
    [
        ("Sale", "ru", "Sale"),
        ({"en": "Sale", "ru": "Скидки"}, "ru", "Скидки"),
        ({"en": "Sale"}, "ru", "Sale"),
        ({"ru": "Скидки"}, "en", "Скидки"),
        ({"en": "Sale", "pt": "Promoção"}, "pt-BR", "Promoção"),
        ({"en": "Sale", "de": "Rabatt"}, "fr", "Sale"),
    ],
)
def test_a_person_reads_their_language_or_what_there_is(
    text: Localized, lang: str, expected: str
) -> None:
    assert in_language(text, lang, "en") == expected


@pytest.mark.parametrize("text", [{"de": "x"}, {"en": "x", "pt-BR": "y"}])
def test_languages_that_the_caller_lists_are_taken(text: Any) -> None:
    languages = ("en", "ru", "de", "pt-BR")

    assert validate(Thing, {"title": text}, languages=languages).title == text


def test_languages_that_are_listed_are_named_in_a_refusal() -> None:
    with pytest.raises(ValidationFailed) as refused:
        validate(Thing, {"title": {"fr": "x"}}, languages=("en", "ru", "de"))

    why = "must be a text, or an object of texts by en, ru and de (setting languages)"
    assert refused.value.message == f"title: {why}"


def test_what_is_stored_may_be_in_any_language_and_is_still_looked_at() -> None:
    assert Thing.model_validate({"title": {"sr-Latn": "x"}}).title == {"sr-Latn": "x"}
    with pytest.raises(ValidationFailed, match="an object of texts by language"):
        validate(Thing, {"title": {"not a tag": "x"}}, languages=None)


@pytest.mark.parametrize("tag", ["de", "pt-BR", "zh-Hant", "sr-Latn-RS", "es-419", "de-1996"])
def test_a_tag_is_taken_as_it_should_be_written(tag: str) -> None:
    assert check_tag(tag) == tag


@pytest.mark.parametrize("tag", ["", "DE", "pt-br", "pt_BR", "german!", "zh-hant", "e", "de-" * 20])
def test_another_writing_is_no_tag(tag: str) -> None:
    with pytest.raises(ValueError, match="must be a language's tag"):
        check_tag(tag)


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("DE", "de"),
        ("pt-br", "pt-BR"),
        ("ZH-hant-tw", "zh-Hant-TW"),
        ("zh-cmn-hans-cn", "zh-cmn-Hans-CN"),
        ("ES-419", "es-419"),
        ("SL-rozaj-BISKE", "sl-rozaj-biske"),
        ("de-ch-1901", "de-CH-1901"),
        ("DE-U-CO-PHONEBK", "de-u-co-phonebk"),
        ("en-CA-X-CA", "en-CA-x-ca"),
        ("X-Whatever", "x-whatever"),
        ("I-Klingon", "i-klingon"),
        ("en-gb-OED", "en-GB-oed"),
        ("de-" + "abcde-" * 5 + "x-a", None),
        ("", None),
        ("d", None),
        ("de_AT", None),
        ("de-", None),
        ("de-AT-AT", None),
        ("de-419-DE", None),
        ("german language", None),
        ("дe", None),
        ("de-a", None),
        ("de\n", None),
        ("i-other", None),
        ("\u212aa", None),
    ],
)
def test_a_persons_tag_is_well_formed_and_gets_the_canonical_case(
    tag: str, canonical: str | None
) -> None:
    if canonical is None:
        with pytest.raises(ValueError, match="must be a language tag"):
            canonical_tag(tag)
    else:
        assert canonical_tag(tag) == canonical
        assert canonical_tag(canonical) == canonical


@pytest.mark.parametrize(
    ("reported", "tag"),
    [("pt_br", "pt-BR"), (" ru ", "ru"), ("", None), (None, None), ("C.UTF-8", None)],
)
def test_what_a_platform_reports_is_read_with_underscores_and_else_as_nothing(
    reported: str | None, tag: str | None
) -> None:
    assert reported_tag(reported) == tag


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("de", "de"),
        ("de-AT", "de"),
        ("DE_at", "de"),
        ("pt-BR", "pt-BR"),
        ("pt", "pt-BR"),
        ("pt-PT", "pt-BR"),
        ("pt-Latn-PT", "pt-BR"),
        ("zh-TW", "zh-Hant"),
        ("zh-yue-Hant-HK", "zh-Hant"),
        ("zh-yue-Hans-HK", None),
        ("de-x-hans", "de"),
        ("zh-Hant-TW", "zh-Hant"),
        ("zh-Hans", None),
        ("den", None),
        ("", None),
        ("-", None),
    ],
)
def test_the_closest_language_is_its_beginning_or_a_sibling(tag: str, expected: str | None) -> None:
    assert closest(tag, ("en", "de", "pt-BR", "zh-Hant")) == expected


@pytest.mark.parametrize(
    ("tag", "languages", "expected"),
    [
        ("zh-TW", ("zh-Hans", "zh-Hant"), "zh-Hant"),
        ("zh-TW", ("zh-Hant", "zh-Hans"), "zh-Hant"),
        ("zh-CN", ("zh-Hant", "zh-Hans"), "zh-Hans"),
        ("zh-TW", ("zh", "zh-Hant"), "zh-Hant"),
        ("zh-Hant", ("zh-CN", "zh-TW"), "zh-TW"),
        ("zh-HK", ("en", "zh-Hans"), None),
        ("zh", ("en", "zh-Hant"), "zh-Hant"),
        ("zh", ("zh-Hant", "zh-Hans"), "zh-Hans"),
        ("yue", ("zh-Hans", "zh-Hant"), None),
        ("sr", ("sr-Latn", "sr-Cyrl"), "sr-Cyrl"),
        ("sr-RS", ("sr-Latn", "sr-Cyrl"), "sr-Cyrl"),
        ("sr-ME", ("sr-Cyrl", "sr-Latn"), "sr-Latn"),
        ("uz", ("uz-Cyrl", "uz-Latn"), "uz-Latn"),
        ("iw-IL", ("en", "he"), "he"),
        ("no", ("en", "nb"), "nb"),
        ("no", ("no", "nb"), "no"),
        ("sh", ("sr-Cyrl", "sr-Latn"), "sr-Latn"),
        ("en-GB", ("en-US", "en-AU"), "en-US"),
    ],
)
def test_languages_of_several_scripts_and_codes_out_of_use(
    tag: str, languages: tuple[str, ...], expected: str | None
) -> None:
    assert closest(tag, languages) == expected


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("en", "English"),
        ("ru", "Русский"),
        ("de", "Deutsch"),
        ("zh-Hant", "中文 (繁體)"),
        ("qaa", "qaa"),
    ],
)
def test_a_language_is_called_as_it_calls_itself(tag: str, name: str) -> None:
    assert own_name(tag) == name


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        (("en", "zh", "zh-Hant", "zh-Hant-TW"), "zh-Hant-TW"),
        (("en", "zh", "zh-Hant"), "zh-Hant"),
        (("en", "zh"), "zh"),
        (("de", "en"), "en"),
        (("de", "fr"), "de"),
    ],
)
def test_a_text_falls_back_from_a_tag_to_its_language_and_then_to_the_default(
    known: tuple[str, ...], shown: str
) -> None:
    assert language_of(known, "zh-Hant-TW", "en") == shown


@pytest.mark.parametrize(
    "header", ["-" * 30_000, "a-" * 15_000, "a," * 15_000, "-," * 15_000, "a;q=1," * 5_000]
)
def test_a_language_is_looked_up_in_no_time_whatever_a_browser_says(header: str) -> None:
    assert growing(preferred, [header], sizes=(7_500, 30_000)) == []
    assert growing(partial(closest, languages=("en", "ru")), [header]) == []


def test_a_language_far_behind_in_a_header_is_found() -> None:
    assert preferred(f"{'xx, ' * 40}ru") == "ru"


@pytest.mark.parametrize(("place", "script"), i18n._SCRIPTS.items())
def test_likely_scripts_are_those_of_cldr(place: str, script: str) -> None:
    language, _, country = place.partition("-")
    subtags = get_global("likely_subtags")
    likely = subtags.get(f"{language}_{country.upper()}") or subtags[language]

    assert likely.split("_")[1].lower() == script
