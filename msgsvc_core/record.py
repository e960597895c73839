"""Values that are made by the thousand a second."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass with slots that mypy takes for frozen, and Python does not.

    Frozen ones set each field by a call of its own: 14 fields took 4 µs instead of 0.3, and a message
    passes through half a dozen such values on its way.
    """
    return dataclass(slots=True)(cls)
