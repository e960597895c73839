"""The fields of a form: questions, and the answers that they accept."""

import re
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_forms.patterns import MOST_PATTERN, check_pattern

FieldType = Literal[
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
]

#: Maximum characters of a text answer, unless the field sets a lower limit.
MOST_TEXT = 4000

#: Default and maximum of the highest rating.
USUAL_RATING, MOST_RATING = 5, 10

#: Files of one answer.
MOST_FILES = 10

#: The largest number: integers up to here are exact in every JSON parser.
MOST_NUMBER = 10**15

_KEY = re.compile(r"[a-z][a-z0-9_]{0,47}")


def _check_key(key: str) -> str:
    if not _KEY.fullmatch(key):
        raise InvalidValue("must be 1-48 of a-z, 0-9 and _, and begin with a letter")
    return key


def _check_value(value: str) -> str:
    if value != value.strip() or not value.isprintable():
        raise InvalidValue("must be printable, without spaces at its ends")
    return value


FieldKey = Annotated[str, Field(examples=["email"]), AfterValidator(_check_key)]
OptionValue = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_check_value)]
Label = Annotated[Localized, visible(300)]


class Option(RequestModel):
    """An option: `value` is stored in the answer, `label` is shown to users."""

    value: OptionValue = Field(description="What the answer holds.", examples=["morning"])
    label: Annotated[Localized, visible(100)] = Field(
        description="What people see: one text for all, or texts by language.",
        examples=[{"en": "In the morning", "ru": "Утром"}],
    )


class FormField(RequestModel):
    """A question of a form."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"key": "email", "type": "email", "label": "Your email", "required": True},
                {
                    "key": "time",
                    "type": "choice",
                    "label": {"en": "When may we call?", "ru": "Когда вам позвонить?"},
                    "options": ["morning", "evening"],
                },
            ]
        }
    )

    key: FieldKey = Field(
        description="Name of the answer, unique in the form: 1-48 of a-z, 0-9 and _, beginning with a"
        " letter."
    )
    type: FieldType = Field(description="What kind of answer it accepts.")
    label: Label = Field(
        description="The question: one text for all, or texts by language.", examples=["Your email"]
    )
    required: bool = Field(
        False, description="Whether it must be answered; with `consent`, whether it must be true."
    )
    options: list[OptionValue | Option] | None = Field(
        None,
        description="For `choice` and `multichoice`: 2-50 different strings, or values with labels.",
        examples=[["morning", "evening"]],
    )
    min: int | float | str | None = Field(
        None,
        description="Minimum number, date (YYYY-MM-DD), text length, or number of choices.",
        examples=[1],
    )
    max: int | float | str | None = Field(
        None,
        description="Maximum of the same; also the highest rating (2-10, by default 5), or"
        " the number of files (1-10, by default 1).",
        examples=[100],
    )
    pattern: Annotated[str, Field(min_length=1, max_length=MOST_PATTERN)] | None = Field(
        None,
        description="For `text`: RE2 regular expression that the whole answer must match.",
        examples=["[A-Z]{2}[0-9]{4}"],
    )
    multiline: bool = Field(
        False, description="For `text`: whether the answer may have several lines."
    )

    @model_validator(mode="after")
    def _fitting(self) -> "FormField":
        """`options` belong to `choice` and `multichoice`, `pattern` and `multiline` to texts. `min` and
        `max` are of the kind of the field, and `min` is at most `max`."""
        for name, problem in _problems(self):
            if problem is not None:
                raise wrong_field(name, problem)
        return self

    @property
    def choices(self) -> list[Option]:
        """The options, each with a label."""
        return [
            one if isinstance(one, Option) else Option(value=one, label=one)
            for one in self.options or ()
        ]

    @property
    def best(self) -> int:
        """The highest score of a rating."""
        return USUAL_RATING if self.max is None else int(self.max)

    @property
    def max_files(self) -> int:
        return 1 if self.max is None else int(self.max)


def _problems(field: FormField) -> list[tuple[str, InvalidValue | None]]:
    """Attributes of the field, with the problem of each."""
    return [
        ("options", _options_problem(field)),
        ("pattern", _pattern_problem(field)),
        ("multiline", _multiline_problem(field)),
        ("min", _bound_problem(field, "min", field.min)),
        ("max", _bound_problem(field, "max", field.max)),
        ("max", _order_problem(field)),
    ]


def _options_problem(field: FormField) -> InvalidValue | None:
    chosen = field.type in {"choice", "multichoice"}
    if not chosen:
        return (
            None
            if field.options is None
            else InvalidValue("are not for a field of type {type}", type=field.type)
        )
    if field.options is None or not 2 <= len(field.options) <= 50:
        return InvalidValue("must be 2-50")
    values = [option.value for option in field.choices]
    return None if len(set(values)) == len(values) else InvalidValue("hold the same value twice")


def _pattern_problem(field: FormField) -> InvalidValue | None:
    if field.pattern is None:
        return None
    if field.type != "text":
        return InvalidValue("is not for a field of type {type}", type=field.type)
    try:
        check_pattern(field.pattern)
    except InvalidValue as error:
        return error
    return None


def _multiline_problem(field: FormField) -> InvalidValue | None:
    return (
        InvalidValue("is not for a field of type {type}", type=field.type)
        if field.multiline and field.type != "text"
        else None
    )


#: Range of an integer bound, by field type.
_WHOLE_BOUNDS = {
    "text": (0, MOST_TEXT),
    "multichoice": (0, 50),
    "rating": (2, MOST_RATING),
    "file": (1, MOST_FILES),
}


def _bound_problem(field: FormField, name: str, bound: Any) -> InvalidValue | None:
    if bound is None:
        return None
    if field.type == "date":
        return None if is_date(bound) else InvalidValue("must be a date as 2026-11-21")
    if field.type == "number":
        is_number = not isinstance(bound, str) and abs(bound) <= MOST_NUMBER
        return None if is_number else InvalidValue("must be a number")
    if field.type not in _WHOLE_BOUNDS or (name == "min" and field.type in {"rating", "file"}):
        return InvalidValue("is not for a field of type {type}", type=field.type)
    least, limit = _WHOLE_BOUNDS[field.type]
    if isinstance(bound, int) and not isinstance(bound, bool) and least <= bound <= limit:
        return None
    return InvalidValue("must be a whole number of {minimum}-{limit}", minimum=least, limit=limit)


def _order_problem(field: FormField) -> InvalidValue | None:
    low, high = field.min, field.max
    if low is None or high is None or isinstance(low, str) != isinstance(high, str):
        return None
    is_less = high < low  # type: ignore[operator] # both of a kind
    return InvalidValue("must not be less than min") if is_less else None


def is_date(text: Any) -> bool:
    """Whether a value is an existing date, as `2026-11-21`."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
