"""Turns pydantic's errors into API errors that name the field."""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from msgsvc_core.kernel.errors import (
    ApiError,
    Finding,
    InvalidUrl,
    InvalidValue,
    ValidationFailed,
    calling_package,
)
from msgsvc_core.kernel.i18n import LANGUAGES, LISTED
from msgsvc_core.kernel.validation_messages import WRONG_FIELD, shortened, to_findings
from msgsvc_core.security.http_urls import WrongUrl

#: Maximum number of problems that one response names.
MOST_NAMED = 3

M = TypeVar("M", bound=BaseModel)


def validate(
    model: type[M],
    value: Any,
    whole: str = "body",
    *,
    languages: Sequence[str] | None = LANGUAGES,
) -> M:
    """Validates `value` as the model. `whole` names the value in errors that concern no single field.

    `languages` are the accepted language codes, `settings.languages` of the service; None, for stored
    values that were checked before, accepts any.

    Raises `InvalidUrl` if only URLs are invalid, else `ValidationFailed`.
    """
    try:
        return model.model_validate(value, context={LISTED: languages})
    except ValidationError as error:
        raise refusal(error, whole) from None


def refusal(error: ValidationError, whole: str = "body") -> ApiError:
    """The error response for a validation error."""
    problems = error.errors(include_url=False, include_input=False)
    of_urls = (isinstance(problem.get("ctx", {}).get("error"), WrongUrl) for problem in problems)
    kind = InvalidUrl if all(of_urls) else ValidationFailed
    return kind.of(_findings(problems, whole))


def findings(error: ValidationError, whole: str = "body") -> list[Finding]:
    """E.g. `buttons[0][1].url: must be an http or https URL`; the first few."""
    return _findings(error.errors(include_url=False, include_input=False), whole)


def _findings(problems: Sequence[ErrorDetails], whole: str) -> list[Finding]:
    # Of thousands the first few are put into words.
    return [
        finding.at(field_path(problem["loc"]) or whole)
        for problem in problems[:MOST_NAMED]
        for finding in to_findings(problem)
    ]


def wrong_field(name: str, problem: str | InvalidValue, /, **params: object) -> ValidationError:
    """For validators of a whole model, an error about one of its fields: a message id with its parameters,
    or the findings of another validator."""
    if isinstance(problem, InvalidValue):
        (finding,) = problem.findings
    else:
        finding = Finding(problem, params, package=calling_package(2))
    reason = PydanticCustomError(WRONG_FIELD, "{finding}", {"finding": finding})
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
