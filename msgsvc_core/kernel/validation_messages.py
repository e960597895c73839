"""Messages of validation errors, by pydantic's type of error and its parameters.

The texts are our own, with ids that catalogues translate; pydantic's are not used.
"""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.kernel.errors import Finding, findings_of

#: Maximum characters of the client's own text that an error message repeats.
MAX_REPEATED = 64

#: The catalogue of this module's texts.
_CORE = "msgsvc_core"

#: By the `type` of a pydantic error: our text, and the members of its `ctx` by the name of our parameters.
_TEXTS: dict[str, tuple[str, dict[str, str]]] = {
    "missing": ("is required", {}),
    "extra_forbidden": ("there is no such field", {}),
    "model_type": ("must be a JSON object", {}),
    "model_attributes_type": ("must be a JSON object", {}),
    "dict_type": ("must be a valid dictionary", {}),
    "list_type": ("must be a list", {}),
    "tuple_type": ("must be a list", {}),
    "set_type": ("must be a list", {}),
    "frozen_set_type": ("must be a list", {}),
    "none_required": ("must be None", {}),
    "string_type": ("must be a valid string", {}),
    "string_unicode": ("must be a valid string", {}),
    "string_pattern_mismatch": ("must match pattern '{pattern}'", {"pattern": "pattern"}),
    "bool_type": ("must be a valid boolean", {}),
    "bool_parsing": ("must be a valid boolean", {}),
    "int_type": ("must be a valid integer", {}),
    "int_parsing": ("must be a valid integer", {}),
    "int_from_float": ("must be a valid integer, got a number with a fractional part", {}),
    "float_type": ("must be a valid number", {}),
    "float_parsing": ("must be a valid number", {}),
    "finite_number": ("must be a finite number", {}),
    "greater_than": ("must be greater than {bound}", {"bound": "gt"}),
    "greater_than_equal": ("must be greater than or equal to {minimum}", {"minimum": "ge"}),
    "less_than": ("must be less than {bound}", {"bound": "lt"}),
    "less_than_equal": ("must be less than or equal to {maximum}", {"maximum": "le"}),
    "multiple_of": ("must be a multiple of {factor}", {"factor": "multiple_of"}),
    "literal_error": ("must be {choices}", {"choices": "expected"}),
    "enum": ("must be {choices}", {"choices": "expected"}),
    "string_too_short": ("must have at least {minimum} characters", {"minimum": "min_length"}),
    "string_too_long": ("must have at most {limit} characters", {"limit": "max_length"}),
    "too_short": ("must have at least {minimum} items", {"minimum": "min_length"}),
    "too_long": ("must have at most {limit} items", {"limit": "max_length"}),
    "date_type": ("must be a valid date", {}),
}

#: The texts with a different singular.
_OF_ONE = {
    "must have at least {minimum} characters": "must have at least {minimum} character",
    "must have at most {limit} characters": "must have at most {limit} character",
    "must have at least {minimum} items": "must have at least {minimum} item",
    "must have at most {limit} items": "must have at most {limit} item",
}


def to_findings(problem: Mapping[str, Any]) -> tuple[Finding, ...]:
    """The findings of one of pydantic's errors with its context, without its location.

    Errors of our own validators keep their text. A type that none of our models causes has pydantic's text,
    untranslated.
    """
    kind, context = problem["type"], problem.get("ctx", {})
    if kind == "value_error":
        return findings_of(context["error"])
    if kind == WRONG_FIELD:
        return (context["finding"],)
    if kind not in _TEXTS:
        return (Finding(problem["msg"]),)
    text, names = _TEXTS[kind]
    params = {ours: _number(context[theirs]) for ours, theirs in names.items()}
    if text in _OF_ONE and 1 in params.values():
        text = _OF_ONE[text]
    return (Finding(text, params, package=_CORE),)


def _number(value: object) -> object:
    """`0` for the `0.0` that pydantic makes of a bound of a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


#: The type of the errors of `wrong_field`.
WRONG_FIELD = "wrong_field"


def shortened(name: str) -> str:
    """A name from the body, shortened for an error message."""
    return name if len(name) <= MAX_REPEATED else name[: MAX_REPEATED - 1] + "…"
