"""Texts of some characters: what is taken, what the schema says, and that no pattern is large in memory."""

import re
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from msgsvc_core.api.types import Characters

ROOT = Path(__file__).parents[2]

NAME: TypeAdapter[str] = TypeAdapter(
    Annotated[str, Characters(r"[\w-]", 64), Field(examples=["vip"])]
)

#: A counted class of the letters of all scripts, in the source.
COUNTED = re.compile(r"""pattern=f?r?["'][^"']*(?:\\w|\[[^\]]*\\w[^\]]*\])\{""")


@pytest.mark.parametrize(
    "text", ["a", "a" * 64, "Gäste-2", "\u0939\u093f\u0928\u094d\u0926\u0940", "_"]
)
def test_letters_of_any_script_are_taken(text: str) -> None:
    assert NAME.validate_python(text, strict=True) == text


@pytest.mark.parametrize("text", ["", "a" * 65, "a b", "a\n", "\na", "a,b", 7])
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(ValidationError):
        NAME.validate_python(text, strict=True)


def test_the_schema_has_characters_and_their_number_in_one_pattern() -> None:
    assert NAME.json_schema() == {
        "type": "string",
        "pattern": r"^[\w-]{1,64}$",
        "examples": ["vip"],
    }


def test_no_model_counts_letters_of_all_scripts_in_a_pattern() -> None:
    assert COUNTED.search(r'Field(pattern=r"^[\w.-]{1,64}$")')
    modules = [
        path
        for folder in ("msgsvc_core", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        if COUNTED.search(path.read_text("utf-8"))
    ]

    assert modules == []
