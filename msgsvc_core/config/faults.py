"""Says in words what is wrong with settings, and which setting a misspelled one was meant to be."""

import difflib
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ValidationError

from msgsvc_core.kernel.errors import join_findings
from msgsvc_core.kernel.validation_messages import to_findings


def explain(error: ValidationError, model: type[BaseModel], prefix: str = "") -> str:
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        name = ".".join(
            str(part) for part in ((prefix, *problem["loc"]) if prefix else problem["loc"])
        )
        if problem["type"] == "extra_forbidden":
            text = "there is no such setting" + _suggestion(model, problem["loc"])
        elif problem["type"] == "model_type":
            text = "must be a table"
        else:
            text = join_findings(to_findings(problem))
        # An error about several settings names them itself.
        lines.append(f"{name}: {text}" if name else text)
    return "\n".join(lines)


def _suggestion(model: type[BaseModel], place: Sequence[int | str]) -> str:
    """The setting that a misspelled one in a section was meant to be."""
    *outer, name = map(str, place)
    for part in outer:
        field = model.model_fields.get(part)
        found = None if field is None else field.annotation
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            return ""
        model = found
    close = difflib.get_close_matches(name, model.model_fields, n=1)
    return f"; did you mean {'.'.join((*outer, close[0]))!r}?" if close else ""


def unknown(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    hint = (
        f"; did you mean {close[0]!r}?" if close else "; is the plugin that owns it in `plugins`?"
    )
    return f"{name}: there is no such setting{hint}"
