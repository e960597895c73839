"""Typed answers: what people type, press or post becomes a value of the field's type, or is refused.

The same for the web and the messenger. A value is what `form.submitted` carries:

    text, email, phone, date, choice    text (a phone without spaces, a date as 2026-11-21)
    number, rating                      number
    multichoice                         list of texts, in the order of the options
    consent                             true or false
    file                                list of {"file_id", "filename", "mime_type", "size", "type"}
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, Literal

from msgsvc_core.kernel import phone
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_forms.fields import MOST_NUMBER, MOST_TEXT, FormField, is_date
from msgsvc_forms.patterns import matches

#: A value of JSON; None stands for no answer.
Value = Any

#: Answers by the key of their field; who gave none is left out.
Answers = Mapping[str, Value]

#: Why an answer is refused; `texts.explain` puts it into words.
Why = Literal[
    "required",
    "not_text",
    "too_short",
    "too_long",
    "not_as_asked",
    "not_number",
    "too_small",
    "too_large",
    "not_email",
    "not_phone",
    "not_date",
    "too_early",
    "too_late",
    "not_choice",
    "too_few",
    "too_many",
    "not_rating",
    "not_consent",
    "not_file",
    "bad_file",
]

_EMAIL = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@"
    r"[\w](?:[\w-]{0,61}[\w])?(?:\.[\w](?:[\w-]{0,61}[\w])?)+"
)
#: A comma that may as well stand between thousands: `12,500`. Whoever wrote it is asked once more.
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,16}([.,][0-9]{1,12})?", re.ASCII)
_PHONE = re.compile(r"(\+|00)?[0-9]{5,15}", re.ASCII)
_DOTTED_DATE = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})", re.ASCII)

#: What stands between the digits of a phone number as people write it.
_PHONE_ASIDE = re.compile(r"[\s().\-\u2010-\u2015/]+")

#: What no answer holds: control characters, except where a line or a column ends.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_YES = frozenset({"true", "on", "yes", "1", "да"})
_NO = frozenset({"false", "off", "no", "0", "нет"})


class WrongAnswer(Exception):
    """An answer that is invalid for its field: `why`, with the accepted range or format in `values`."""

    def __init__(self, why: Why, **values: Any) -> None:
        super().__init__(why)
        self.why = why
        self.values = values


def read_answer(field: FormField, given: Any) -> Value:
    """The typed value of an answer; None if it is empty.

    `given` is the text as typed, a JSON value, or for `file` the list of files' descriptions. Raises
    `WrongAnswer`.
    """
    if isinstance(given, str):
        given = given.replace("\r\n", "\n").strip()
        if _CONTROL.search(given):
            raise WrongAnswer("not_text")
    value = None if given in (None, "", []) else _READERS[field.type](field, given)
    if field.required and (value is None or value is False or value == []):
        raise WrongAnswer("required")
    return None if value == [] else value


def _text(field: FormField, given: Any) -> str:
    if not isinstance(given, str):
        raise WrongAnswer("not_text")
    text = given if field.multiline else given.replace("\n", " ")
    least, limit = int(field.min or 0), int(field.max or MOST_TEXT)
    if len(text) < least:
        raise WrongAnswer("too_short", least=least)
    if len(text) > limit:
        raise WrongAnswer("too_long", most=limit)
    if field.pattern is not None and not matches(field.pattern, text):
        raise WrongAnswer("not_as_asked")
    return text


def _number(field: FormField, given: Any) -> int | float:
    value = _as_number(given)
    # What is not a number at all is not less than anything either.
    if value is None or not abs(value) <= MOST_NUMBER:
        raise WrongAnswer("not_number")
    if field.min is not None and value < field.min:  # type: ignore[operator] # a number's bound is one
        raise WrongAnswer("too_small", least=field.min)
    if field.max is not None and value > field.max:  # type: ignore[operator] # likewise
        raise WrongAnswer("too_large", most=field.max)
    return value


def _as_number(given: Any) -> int | float | None:
    if isinstance(given, bool):
        return None
    if isinstance(given, int | float):
        return given
    if not isinstance(given, str):
        return None
    text = re.sub(r"[\u00a0\u202f ]", "", given).replace("\u2212", "-")
    if not _NUMBER.fullmatch(text) or _THOUSANDS.fullmatch(text):
        return None
    text = text.replace(",", ".")
    return float(text) if "." in text else int(text)


def _email(_field: FormField, given: Any) -> str:
    if not isinstance(given, str) or len(given) > 254 or not _EMAIL.fullmatch(given):
        raise WrongAnswer("not_email")
    return given


def _phone(_field: FormField, given: Any) -> str:
    text = _PHONE_ASIDE.sub("", given) if isinstance(given, str) else ""
    if not _PHONE.fullmatch(text):
        raise WrongAnswer("not_phone")
    if not text.startswith(("+", "00")):
        return text
    try:
        return phone.normalized(text)
    except InvalidValue:
        raise WrongAnswer("not_phone") from None


def _date(field: FormField, given: Any) -> str:
    text = given if isinstance(given, str) else ""
    if dotted := _DOTTED_DATE.fullmatch(text):
        text = f"{dotted[3]}-{dotted[2]:0>2}-{dotted[1]:0>2}"
    if not is_date(text):
        raise WrongAnswer("not_date")
    if field.min is not None and text < str(field.min):
        raise WrongAnswer("too_early", least=date.fromisoformat(str(field.min)))
    if field.max is not None and text > str(field.max):
        raise WrongAnswer("too_late", most=date.fromisoformat(str(field.max)))
    return text


def _choice(field: FormField, given: Any) -> str:
    if not isinstance(given, str):
        raise WrongAnswer("not_choice")
    return _chosen(field, given)


def _multichoice(field: FormField, given: Any) -> list[str]:
    if isinstance(given, str):
        given = [given] if _named(field, given) else given.split(",")
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise WrongAnswer("not_choice")
    picked = {_chosen(field, one) for one in given if one.strip()}
    if field.min is not None and len(picked) < int(field.min):
        raise WrongAnswer("too_few", least=int(field.min))
    if field.max is not None and len(picked) > int(field.max):
        raise WrongAnswer("too_many", most=int(field.max))
    return [option.value for option in field.choices if option.value in picked]


def _chosen(field: FormField, given: str) -> str:
    found = _named(field, given)
    if found is None:
        raise WrongAnswer("not_choice")
    return found


def _named(field: FormField, given: str) -> str | None:
    """The option that a text names: by its value, or by a label as people read and type it."""
    options = field.choices
    if any(option.value == given for option in options):
        return given
    meant = given.strip().casefold()
    for option in options:
        labels = option.label if isinstance(option.label, str) else option.label.values()
        read = [labels] if isinstance(labels, str) else list(labels)
        if meant in {option.value.casefold(), *(label.strip().casefold() for label in read)}:
            return option.value
    return None


def _rating(field: FormField, given: Any) -> int:
    value = _as_number(given)
    if value is None or not 1 <= value <= field.best or value != int(value):
        raise WrongAnswer("not_rating", most=field.best)
    return int(value)


def _consent(_field: FormField, given: Any) -> bool:
    if isinstance(given, bool):
        return given
    word = given.casefold() if isinstance(given, str) else ""
    if word not in _YES | _NO:
        raise WrongAnswer("not_consent")
    return word in _YES


def _file(field: FormField, given: Any) -> list[dict[str, Any]]:
    files = given if isinstance(given, list) else []
    if not files or not all(isinstance(one, dict) and "file_id" in one for one in files):
        raise WrongAnswer("not_file")
    if len(files) > field.max_files:
        raise WrongAnswer("too_many", most=field.max_files)
    return files


_READERS: Mapping[str, Callable[[FormField, Any], Value]] = {
    "text": _text,
    "number": _number,
    "email": _email,
    "phone": _phone,
    "date": _date,
    "choice": _choice,
    "multichoice": _multichoice,
    "rating": _rating,
    "file": _file,
    "consent": _consent,
}


def in_order(fields: Sequence[FormField], answers: Answers) -> list[dict[str, Any]]:
    """Answers in the order of the questions, as in `form.submitted` and lists of submissions."""
    return [
        {"key": field.key, "type": field.type, "value": answers[field.key]}
        for field in fields
        if field.key in answers
    ]
