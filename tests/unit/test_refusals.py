"""Refusals are message ids with parameters: each has its Russian, or is listed as one for programs."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Annotated

import pytest
from babel.messages.pofile import read_po
from pydantic import AfterValidator, BaseModel, Field, ValidationError, create_model

from msgsvc_core.api.validation import validate, wrong_field
from msgsvc_core.kernel.errors import (
    ApiError,
    Conflict,
    InvalidUrl,
    InvalidValue,
    NotFound,
    Reasons,
    ValidationFailed,
)
from msgsvc_core.kernel.validation_messages import _OF_ONE, _TEXTS

ROOT = Path(__file__).parents[2]

#: Refusals that no page shows, as only programs can bring them about: a package and a message id a line.
FOR_PROGRAMS = Path(__file__).with_name("refusals_for_programs.txt")

PACKAGES = [
    ROOT / "msgsvc_core",
    *sorted(path for path in ROOT.glob("plugins/*/*/msgsvc_*") if path.is_dir()),
]

#: The package of the refusals that are made here.
OWN = __name__.partition(".")[0]

#: What takes a message id first, beside the subclasses of `ApiError` and of `InvalidValue`.
CALLS = {"ForbiddenTarget", "said_as"}


#: A class and what it is derived from.
CLASS = re.compile(r"\bclass (\w+)\(([^)]*)\)")


def sources() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            if "testing" not in path.parts:
                yield package, path.read_text("utf-8")


def refusals(texts: list[tuple[Path, str]]) -> set[str]:
    """The names of the classes whose constructors take a message id."""
    bases = {
        name: {base.strip() for base in of.split(",")}
        for _, text in texts
        for name, of in CLASS.findall(text)
    }
    found = {"ApiError", "InvalidValue"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return found


@cache
def message_ids() -> dict[str, set[str]]:
    texts = list(sources())
    takes = refusals(texts) | CALLS
    found: dict[str, set[str]] = {package.name: set() for package in PACKAGES}
    # Parsing takes seconds: half of the modules refuse nothing.
    refuses = re.compile(rf"\b(?:{'|'.join(takes)}|wrong_field)\(")
    for package, text in texts:
        calls = ast.walk(ast.parse(text)) if refuses.search(text) else ()
        for node in calls:
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            position = 1 if name == "wrong_field" else 0
            if (name not in takes and not position) or len(node.args) <= position:
                continue
            given = node.args[position]
            assert not isinstance(given, ast.JoinedStr), f"{package.name}: {ast.unparse(node)}"
            if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value:
                found[package.name].add(given.value)
    found["msgsvc_core"] |= {text for text, _ in _TEXTS.values()} | set(_OF_ONE.values())
    return found


def russian(package: str) -> set[str]:
    paths = [path for path in PACKAGES if path.name == package]
    (path,) = (each / "locale/ru/LC_MESSAGES/messages.po" for each in paths)
    if not path.exists():
        return set()
    with path.open("rb") as file:
        return {str(entry.id) for entry in read_po(file) if entry.id and entry.string}


def test_every_refusal_has_its_russian_or_is_for_programs() -> None:
    lines = FOR_PROGRAMS.read_text("utf-8").splitlines()
    for_programs = {tuple(line.split("\t")) for line in lines}
    of_core = russian("msgsvc_core")
    untranslated = {
        (package, msgid)
        for package, msgids in message_ids().items()
        for msgid in msgids - russian(package) - of_core
    }

    assert sorted(untranslated - for_programs) == []
    assert sorted(for_programs - untranslated) == []


def test_parameters_are_named_and_never_numbered() -> None:
    for msgids in message_ids().values():
        for msgid in msgids:
            if "{{" in msgid or "`{}`" in msgid:
                continue
            assert all(name != "" for _, name, _, _ in Formatter().parse(msgid)), msgid


def test_a_refusal_keeps_its_message_id_and_parameters() -> None:
    error = Conflict("a project has at most {limit} forms", field="forms", limit=20)

    (finding,) = error.findings
    assert error.message == "forms: a project has at most 20 forms"
    assert (finding.msgid, finding.params) == ("a project has at most {limit} forms", {"limit": 20})
    assert (finding.path, finding.package) == (("forms",), OWN)


def test_a_text_without_parameters_may_hold_braces() -> None:
    assert ValidationFailed("send `{}` at the least").message == "send `{}` at the least"


def test_a_refusal_of_a_part_names_the_way_to_it() -> None:
    error = NotFound("there is no tag {name!r}", field="tag", name="vip")

    assert error.at("steps[1]").message == "steps[1]: tag: there is no tag 'vip'"
    assert (
        error.at("routes[1].to", joined=True).message == "routes[1].to.tag: there is no tag 'vip'"
    )
    assert type(error.at("steps[1]")) is NotFound
    assert error.message == "tag: there is no tag 'vip'"


def test_a_refusal_within_another_text_stays_one_that_can_be_translated() -> None:
    inner = ValidationFailed("must be at most {limit} characters", field="text", limit=3)
    error = inner.said_as("once rendered, {reason}", field="template")

    assert error.message == "template: once rendered, text: must be at most 3 characters"
    reason = error.findings[0].params["reason"]
    assert isinstance(reason, Reasons)
    assert list(reason) == list(inner.findings)


def test_a_subclass_with_a_constructor_of_its_own_keeps_what_it_is() -> None:
    class Odd(Conflict):
        def __init__(self, number: int) -> None:
            super().__init__("number {number} is odd", number=number)
            self.number = number

    error = Odd(3).at("steps[0]")

    assert (error.number, error.message) == (3, "steps[0]: number 3 is odd")
    assert Odd(3).findings[0].package == OWN


class Body(BaseModel):
    name: str = Field(min_length=1, max_length=3)
    size: float = Field(1, ge=0, le=10.5)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "name: is required"),
        ({"name": ""}, "name: must have at least 1 character"),
        ({"name": "long"}, "name: must have at most 3 characters"),
        ({"name": 1}, "name: must be a valid string"),
        ({"name": "a", "size": -1}, "size: must be greater than or equal to 0"),
        ({"name": "a", "size": 11}, "size: must be less than or equal to 10.5"),
        (
            {"name": "", "size": "x"},
            "name: must have at least 1 character; size: must be a valid number",
        ),
        ([], "body: must be a JSON object"),
    ],
)
def test_pydantics_types_have_texts_of_ours(body: object, message: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        validate(Body, body)

    assert refused.value.message == message
    assert {finding.package for finding in refused.value.findings} == {"msgsvc_core"}


def test_what_a_validator_raises_keeps_its_parameters() -> None:
    def check(value: object) -> None:
        raise InvalidValue("must be at most {limit} bytes", limit=64)

    model = create_model("Checked", name=(Annotated[str, AfterValidator(check)], ...))
    with pytest.raises(ApiError) as refused:
        validate(model, {"name": "x"})

    assert refused.value.message == "name: must be at most 64 bytes"
    assert refused.value.findings[0].params == {"limit": 64}
    assert not isinstance(refused.value, InvalidUrl)


def test_a_wrong_field_of_a_model_keeps_its_parameters() -> None:
    error = wrong_field("kind", "must be one of {choices}", choices="a, b")

    assert isinstance(error, ValidationError)
    assert error.errors()[0]["ctx"]["finding"].params == {"choices": "a, b"}
