"""Parses a user's message or press as the answer to a question."""

import re
from collections.abc import Sequence
from typing import Any

from msgsvc_forms.answers import Value, Why, WrongAnswer, read_answer
from msgsvc_forms.dialogue.events import GivenFile
from msgsvc_forms.dialogue.outcomes import Remark
from msgsvc_forms.dialogue.script import Script

#: Words for a consent beside those that web forms post.
_YES = frozenset({"y", "ok", "agree", "i agree", "д", "ок", "согласен", "согласна"})
_NO = frozenset({"n", "i don't agree", "н", "не согласен", "не согласна"})

#: What stands between several options.
_BETWEEN = re.compile(r"[,;\n]")


class Refused(Exception):
    """An answer that the question does not accept, and the remark about it."""

    def __init__(self, remark: Remark) -> None:
        super().__init__(remark.name)
        self.remark = remark


def read_text(script: Script, key: str, text: str) -> Value:
    """The value of a text. Raises `Refused`."""
    field, said = script[key], text.strip()
    if not said:
        raise _wrong(key, "required")
    given: Any = said
    match field.type:
        case "choice":
            given = _named(script, key, said)
        case "multichoice":
            # The complete text first: a label may contain a comma.
            whole = _named(script, key, said)
            known = {value for value, _ in script.options(key)}
            parts = [whole] if whole in known else _BETWEEN.split(said)
            given = [_named(script, key, part) for part in parts if part.strip()]
        case "rating":
            given = said.removesuffix(f"/{field.best}")
        case "consent":
            word = " ".join(said.casefold().replace("\u2019", "'").split()).rstrip(".!")
            given = "yes" if word in _YES else "no" if word in _NO else word
        case "file":
            raise _wrong(key, "not_file")
    return read_value(script, key, given)


def read_files(script: Script, key: str, files: Sequence[GivenFile]) -> Value:
    """The value of files; `files` are all of the answer."""
    if script[key].type != "file":
        raise Refused(Remark("no_file_here"))
    return read_value(script, key, [file.to_value() for file in files])


def read_place(script: Script, key: str, argument: str) -> Value:
    """The value of a pressed button. Raises `Refused`, and `LookupError` if there is no such button."""
    place = place_of(argument)
    if script[key].type == "consent":
        return read_value(script, key, [False, True][place])
    if script[key].type not in {"choice", "rating"}:
        raise LookupError
    return read_value(script, key, script.options(key)[place][0])


def place_of(argument: str) -> int:
    """A number from 0 in a button's data. Raises `LookupError`."""
    if not (argument.isascii() and argument.isdecimal() and len(argument) < 6):
        raise LookupError
    return int(argument)


def read_value(script: Script, key: str, given: Any) -> Value:
    """Validates a value by the form's rules. Raises `Refused`."""
    try:
        value = read_answer(script[key], given)
    except WrongAnswer as wrong:
        raise Refused(Remark("wrong", key, wrong=wrong)) from None
    if value is None:
        raise _wrong(key, "required")
    return value


def _wrong(key: str, why: Why) -> Refused:
    return Refused(Remark("wrong", key, wrong=WrongAnswer(why)))


def _named(script: Script, key: str, text: str) -> str:
    """The option with this number in the list, unless one is called so; else what was said."""
    options = script.options(key)
    plain = text.strip().casefold()
    if any(plain in {value.casefold(), label.strip().casefold()} for value, label in options):
        return next(
            value
            for value, label in options
            if plain in {value.casefold(), label.strip().casefold()}
        )
    number = plain.rstrip(".)")
    if number.isascii() and number.isdecimal() and 1 <= int(number[:6]) <= len(options):
        return options[int(number[:6]) - 1][0]
    return text.strip()
