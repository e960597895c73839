"""A page of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some items of a list. `next_cursor` is None on the last page."""

    data: list[T]
    next_cursor: str | None
    #: The answer as it came.
    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @classmethod
    def from_data(
        cls, data: Mapping[str, Any], decode: Callable[[Mapping[str, Any]], T]
    ) -> Page[T]:
        return cls([decode(each) for each in data["data"]], data.get("next_cursor"), data)
