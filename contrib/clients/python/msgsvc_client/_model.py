"""What all answers and events have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A part of an answer. Fields that this version doesn't know are in `raw` alone."""

    #: The object as it came, with all its fields.
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


def optional(value: Any, decode: Callable[[Any], T]) -> T | None:
    """None stays."""
    return None if value is None else decode(value)


def one_of(
    value: Any, discriminator: str, decoders: Mapping[str, Callable[[Any], T]]
) -> T | Mapping[str, Any]:
    """The object that the discriminator names; as it came if this version doesn't know it."""
    decode = decoders.get(value[discriminator])
    return value if decode is None else decode(value)


def within(value: Any, decode: Callable[[Any], Any]) -> Any:
    """A value with each object in it decoded, where there may also be texts, numbers or lists of them."""
    if isinstance(value, list):
        return [within(each, decode) for each in value]
    return decode(value) if isinstance(value, dict) else value
