"""`value_object` for frozen dataclasses created thousands of times a second; integers parsed from text."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value_object(cls: type[T]) -> type[T]:
    """A dataclass with slots that is frozen for mypy, but not at runtime.

    A frozen dataclass sets each field by a call: 14 fields took 4 µs instead of 0.3, and each message passes
    through half a dozen such values.
    """
    return dataclass(slots=True)(cls)


#: Maximum digits of an integer. Python refuses to parse thousands of digits, and the databases hold 18.
MOST_DIGITS = 15


def whole_number(text: str) -> int | None:
    """The integer written as plain digits; None for anything else, or for too many digits."""
    is_one = len(text) <= MOST_DIGITS and text.isascii() and text.isdigit()
    return int(text) if is_one else None
