"""What pydantic finds wrong with a value, in our words."""

import re

#: Characters of the client's own text that an error message repeats.
MAX_REPEATED = 64

#: What pydantic adds of its own: how it came to its finding.
_ASIDE = re.compile(r"( after validation, not \d+|, unable to .*)$")
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary|Value|Data|Tuple|Set) should ")


def worded_finding(kind: str, text: str) -> str:
    """E.g. `must be at least 1`, of the `type` and the `msg` of one of its errors."""
    match kind:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "there is no such field"
        case "value_error":
            return text.removeprefix("Value error, ")
        case "model_type" | "model_attributes_type":
            return "must be a JSON object"
        case "list_type" | "tuple_type" | "set_type" | "frozen_set_type":
            return "must be a list"
    if kind.endswith(("_parsing", "_short", "_long")):
        text = _ASIDE.sub("", text)
    return _SUBJECT.sub("must ", text)


def shortened(name: str) -> str:
    """A name from the body, fit to be repeated in a message."""
    return name if len(name) <= MAX_REPEATED else name[: MAX_REPEATED - 1] + "…"
