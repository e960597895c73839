"""Turns pydantic's findings into one sentence that names the field."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from msgsvc_core.api.json_input import shortened
from msgsvc_core.errors import ValidationFailed

#: Findings that one answer names; a body of nonsense need not be listed in full.
MOST_NAMED = 3

#: What pydantic adds of its own: how it came to its finding.
_ASIDE = re.compile(r"( after validation, not \d+|, unable to .*)$")
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary|Value|Data|Tuple|Set) should ")

M = TypeVar("M", bound=BaseModel)


def validate(model: type[M], value: Any, whole: str = "body") -> M:
    """`value` as the model, or `ValidationFailed`. `whole` names the value where no field is at fault."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ValidationFailed(explain(error, whole)) from None


def explain(error: ValidationError, whole: str = "body") -> str:
    """E.g. `buttons[0][1].url: must be an http or https URL`; several are joined by `; `."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{field_path(problem['loc']) or whole}: {_message(problem['type'], problem['msg'])}"
        for problem in problems[:MOST_NAMED]
    )


def wrong_field(name: str, why: str) -> ValidationError:
    """What a validator of a whole model raises of one of its fields."""
    reason = PydanticCustomError("wrong_field", "{why}", {"why": why})
    return ValidationError.from_exception_data(
        name, [{"type": reason, "loc": (name,), "input": None}]
    )


def field_path(location: Sequence[int | str]) -> str:
    """`("buttons", 0, 1, "url")` as `buttons[0][1].url`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{shortened(part)}" if path else shortened(part)
    return path


def _message(kind: str, text: str) -> str:
    match kind:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "there is no such field"
        case "value_error":
            return text.removeprefix("Value error, ")
        case "model_type" | "model_attributes_type":
            return "must be a JSON object"
    if kind.endswith(("_parsing", "_short", "_long")):
        text = _ASIDE.sub("", text)
    return _SUBJECT.sub("must ", text)
