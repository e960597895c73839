"""Typed answers, conditions and ways through a form: pure functions that web and messenger share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgsvc_core.api.validation import validate
from msgsvc_core.kernel.i18n import LANGUAGES, Texts
from msgsvc_forms import plugin
from msgsvc_forms.answers import WrongAnswer, read_answer
from msgsvc_forms.definition import Definition, read_definition
from msgsvc_forms.fields import FormField
from msgsvc_forms.question_flow import always_asked, next_field, path
from msgsvc_forms.texts import _SENTENCES, explain


def field(kind: str, **given: Any) -> FormField:
    return FormField.model_validate({"key": "k", "type": kind, "label": "L", **given})


SIZES = {"options": ["s", {"value": "m", "label": {"en": "Medium", "ru": "Средний"}}, "l"]}

TAKEN: list[tuple[FormField, Any, Any]] = [
    (field("text"), "  a b ", "a b"),
    (field("text"), "a\r\nb", "a b"),
    (field("text", multiline=True), "a\r\nb", "a\nb"),
    (field("text", pattern="[А-Я]{2}[0-9]+"), "АБ12", "АБ12"),
    (field("number"), "3,5", 3.5),
    (field("number"), "0,125", 0.125),
    (field("number"), "12,50", 12.5),
    (field("number"), "1 000", 1000),
    (field("number"), "\u22125", -5),
    (field("number"), 0, 0),
    (field("number", min=-1.5, max=2), "-1.5", -1.5),
    (field("email"), "ann.lee+x@shop.example", "ann.lee+x@shop.example"),
    (field("email"), "анна@почта.рф", None),
    (field("phone"), "+44 (20) 7946-0958", "+442079460958"),
    (field("phone"), "0044 20 7946 0958", "+442079460958"),
    (field("phone"), "8 916 123 45 67", "89161234567"),
    (field("date"), "2026-02-28", "2026-02-28"),
    (field("date"), "1.3.2026", "2026-03-01"),
    (field("choice", **SIZES), "m", "m"),
    (field("choice", **SIZES), "средний", "m"),
    (field("multichoice", **SIZES), ["l", "s", "s"], ["s", "l"]),
    (field("multichoice", **SIZES), "l, Medium", ["m", "l"]),
    (field("rating"), "5", 5),
    (field("rating", max=10), 10, 10),
    (field("consent"), "on", True),
    (field("consent"), False, False),
    (field("consent", required=True), True, True),
    (field("text"), "", None),
    (field("file"), None, None),
]


@pytest.mark.parametrize(("asked", "given_", "value"), TAKEN)
def test_an_answer_becomes_a_value_of_its_type(asked: FormField, given_: Any, value: Any) -> None:
    if value is None and given_:
        with pytest.raises(WrongAnswer):
            read_answer(asked, given_)
        return
    read = read_answer(asked, given_)

    assert (read, type(read)) == (value, type(value))


REFUSED: list[tuple[FormField, Any, str]] = [
    (field("text", required=True), " ", "required"),
    (field("text", min=3), "ab", "too_short"),
    (field("text", max=3), "abcd", "too_long"),
    (field("text"), "x" * 4001, "too_long"),
    (field("text", pattern="[0-9]+"), "12a", "not_as_asked"),
    (field("text"), 5, "not_text"),
    (field("number"), "1e400", "not_number"),
    (field("number"), "12,500", "not_number"),
    (field("number"), "-1,000", "not_number"),
    (field("number"), "9" * 17, "not_number"),
    (field("number"), float("nan"), "not_number"),
    (field("number"), True, "not_number"),
    (field("number", min=1), 0, "too_small"),
    (field("number", max=1), 2, "too_large"),
    (field("email"), "ann", "not_email"),
    (field("email"), "ann@shop", "not_email"),
    (field("email"), "a@b.example, c@d.example", "not_email"),
    (field("phone"), "12ab5", "not_phone"),
    (field("phone"), "1" * 16, "not_phone"),
    (field("date"), "2026-02-30", "not_date"),
    (field("date"), "31.02.2026", "not_date"),
    (field("date", min="2026-01-01"), "2025-12-31", "too_early"),
    (field("date", max="2026-01-01"), "2026-01-02", "too_late"),
    (field("choice", **SIZES), "xl", "not_choice"),
    (field("choice", **SIZES), ["s"], "not_choice"),
    (field("multichoice", **SIZES), ["xl"], "not_choice"),
    (field("multichoice", min=2, **SIZES), ["s"], "too_few"),
    (field("multichoice", max=1, **SIZES), ["s", "m"], "too_many"),
    (field("rating"), 6, "not_rating"),
    (field("rating"), 1.5, "not_rating"),
    (field("rating"), float("inf"), "not_rating"),
    (field("rating"), float("nan"), "not_rating"),
    (field("number"), 10**400, "not_number"),
    (field("consent"), "perhaps", "not_consent"),
    (field("consent", required=True), False, "required"),
    (field("file"), "x", "not_file"),
]


@pytest.mark.parametrize(("asked", "given_", "why"), REFUSED)
def test_what_a_field_does_not_take_is_told_in_both_languages(
    asked: FormField, given_: Any, why: str
) -> None:
    texts = Texts([("msgsvc_forms", plugin.register_locale())], "en")
    with pytest.raises(WrongAnswer) as refused:
        read_answer(asked, given_)
    english, russian = (
        explain(texts.into(lang, "msgsvc_forms"), asked, refused.value) for lang in LANGUAGES
    )

    assert refused.value.why == why
    assert "{" not in english + russian
    assert english != russian


def test_every_reason_has_its_sentence() -> None:
    reasons = {why for _, _, why in REFUSED} | {"bad_file"}

    assert reasons - {"required"} == set(_SENTENCES)


EVERY_KIND = [
    *(field(kind) for kind in ("text", "number", "email", "phone", "date", "rating", "consent")),
    *(field(kind, **SIZES) for kind in ("choice", "multichoice")),
    field("file"),
    field("text", pattern="(a+)+b|(x*)*y"),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(asked=st.sampled_from(EVERY_KIND), anything=JSON)
def test_whatever_is_given_is_read_or_refused(asked: FormField, anything: Any) -> None:
    try:
        value = read_answer(asked, anything)
    except WrongAnswer:
        return
    # What was read is read again as the same: answers are changed, and shown, without loss.
    assert value is None or read_answer(asked, value) == value


def test_a_pattern_takes_no_longer_than_the_text_is_long() -> None:
    evil = field("text", pattern="(a+)+b")

    with pytest.raises(WrongAnswer):
        read_answer(evil, "a" * 4000)


def form(*keys: str, rules: list[dict[str, Any]]) -> Definition:
    fields = [{"key": key, "type": "number", "label": key} for key in keys]
    return validate(Definition, {"title": "T", "fields": fields, "rules": rules})


def way(after: str, to: str | None, op: str | None = None, value: Any = None) -> dict[str, Any]:
    """A rule to the next field, if the answer to `after` compares so."""
    target = {"kind": "next_field", "after": after, **({} if to is None else {"field": to})}
    when = None if op is None else {"when": {"field": after, "op": op, "value": value}}
    return {**(when or {}), "to": target}


def keys(definition: Definition, **answers: Any) -> list[str]:
    return [each.key for each in path(definition, answers)]


def test_the_first_way_that_holds_decides_and_else_it_is_the_next_in_order() -> None:
    made = form(
        "a",
        "b",
        "c",
        "d",
        rules=[way("a", "d", "gt", 10), way("a", "c", "gt", 5), way("c", None, "eq", 0)],
    )

    assert keys(made) == ["a", "b", "c", "d"]
    assert keys(made, a=6) == ["a", "c", "d"]
    assert keys(made, a=11) == ["a", "d"]
    assert keys(made, a=6, c=0) == ["a", "c"]
    assert next_field(made, {"a": 11}, "a") == made.field("d")
    assert next_field(made, {}, "d") is None
    assert always_asked(made) == {"a"}
    assert read_definition(made.to_column()) == made


@given(data=st.data())
def test_every_way_has_an_end_and_goes_forward(data: Any) -> None:
    names = [f"f{number}" for number in range(6)]
    rules = []
    for _ in range(data.draw(st.integers(0, 8))):
        after = data.draw(st.integers(0, 4))
        to = data.draw(st.none() | st.integers(after + 1, 5))
        op = data.draw(st.sampled_from([None, "eq", "ne", "gt", "lt"]))
        rules.append(way(names[after], None if to is None else names[to], op, 1))
    made = form(*names, rules=rules)
    answers = data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 2)))

    asked = keys(made, **answers)

    assert asked[0] == "f0"
    assert asked == sorted(asked)
    assert always_asked(made) <= set(asked)
