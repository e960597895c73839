"""Forms to talk about, and answers that they take: what conversations are tried on."""

from typing import Any

from hypothesis import strategies as st

from msgsvc_forms.definition import Definition
from msgsvc_forms.fields import FormField

KINDS = (
    "text",
    "number",
    "email",
    "phone",
    "date",
    "choice",
    "multichoice",
    "rating",
    "file",
    "consent",
)

#: What is no answer to any question but one for a text.
NONSENSE = (
    "",
    "   ",
    "maybe",
    "<b>x</b>",
    "12:30",
    "99999999999999999999",
    "[]",
    "\x00",
    "٣",
    "/",
    "²",
)

#: Labels that would be markup anywhere.
LABELS = ("Size", "<b>How</b> & [why](http://x)", "*Bold* _it_ `c`", "Размер?", "A" * 300)


@st.composite
def definitions(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, most: int = 6) -> Definition:
    """A form with random fields, and rules that lead past some of them."""
    count = draw(st.integers(1, most))
    fields = [_field(draw, number, draw(st.sampled_from(kinds))) for number in range(count)]
    rules = []
    for _ in range(draw(st.integers(0, 3)) if count > 1 else 0):
        after = draw(st.integers(0, count - 2))
        to = draw(st.none() | st.integers(after + 1, count - 1))
        target = {
            "kind": "next_field",
            "after": f"q{after}",
            "field": None if to is None else f"q{to}",
        }
        when = {
            "field": f"q{draw(st.integers(0, after))}",
            "op": "exists",
            "value": draw(st.booleans()),
        }
        rules.append({"to": target, "when": when} if draw(st.booleans()) else {"to": target})
    return Definition.model_validate({"title": "Form", "fields": fields, "rules": rules})


def _field(draw: st.DrawFn, number: int, kind: str) -> dict[str, Any]:
    field: dict[str, Any] = {
        "key": f"q{number}",
        "type": kind,
        "label": draw(st.sampled_from(LABELS)),
        "required": draw(st.booleans()),
    }
    if kind in {"choice", "multichoice"}:
        count = draw(st.sampled_from([2, 3, 6, 7, 11, 50]))
        size = draw(st.sampled_from([1, 40]))
        field["options"] = [
            {"value": f"v{at}", "label": {"en": f"{'o' * size}{at} <i>", "ru": f"в{at} *"}}
            for at in range(count)
        ]
    if kind == "multichoice" and draw(st.booleans()):
        field |= {"min": 2, "max": 2}
    if kind == "file" and draw(st.booleans()):
        field["max"] = 3
    if kind == "text" and draw(st.booleans()):
        field |= {"min": 2, "max": 10}
    return field


#: Texts that a question takes, and their values; none for files.
_GOOD: dict[str, list[tuple[str, Any]]] = {
    "text": [("word", "word"), ("<b>&</b>", "<b>&</b>"), ("12", "12")],
    "number": [("12", 12), ("-1,5", -1.5), ("1 000", 1000)],
    "email": [("ann@example.com", "ann@example.com")],
    "phone": [("+44 20 7946-0000", "+442079460000"), ("(495) 123 45 67", "4951234567")],
    "date": [("2026-02-28", "2026-02-28"), ("1.12.2026", "2026-12-01")],
    "choice": [("1", "v0"), ("v1", "v1"), ("в1 *", "v1")],
    "multichoice": [("1, 2", ["v0", "v1"]), ("v1;v0", ["v0", "v1"])],
    "rating": [("5", 5), ("3/5", 3)],
    "consent": [("Yes", True), ("да", True)],
}


def good_answers(field: FormField) -> list[tuple[str, Any]]:
    """Texts that a question takes, and their values; none for files."""
    return _GOOD.get(field.type, [])
