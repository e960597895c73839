"""A page of a list as its reader asked for it: where it begins, in which order, and its neighbours.

The address says `cursor`, and with `back` that the page ends there; `at` is the number of the first entry,
for "51-100 of 1,234"; `sort` is `created` for the oldest first.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from msgsvc_core.api.pagination import next_cursor
from msgsvc_core.dashboard.context import PageContext
from msgsvc_core.db.counting import Count
from msgsvc_core.kernel.values import whole_number

T = TypeVar("T")

#: Orders of a list: by its time, the latest first, and the other way round.
NEWEST, OLDEST = "", "created"


@dataclass(slots=True)
class ListWalk:
    """`names` are the filters of the list, kept on the way to its other pages."""

    page: PageContext
    path: str
    names: Sequence[str]
    #: The addresses of the neighbouring pages; empty for none. Set by `cut`.
    newer: str = ""
    older: str = ""
    first: int = 1
    last: int = 0
    #: How many match; None if they aren't counted. One page is counted by `cut`.
    count: Count | None = None
    _at: int = field(init=False)

    def __post_init__(self) -> None:
        self._at = max(1, whole_number(self.page.query.get("at", "")) or 1)

    @property
    def sort(self) -> str:
        return OLDEST if self.page.query.get("sort") == OLDEST else NEWEST

    @property
    def is_back(self) -> bool:
        return bool(self.page.query.get("back")) and "cursor" in self.page.query

    @property
    def ascending(self) -> bool:
        """Whether ids grow along the walk: the oldest first, or backwards from the latest first."""
        return (self.sort == OLDEST) != self.is_back

    def cut(self, found: Sequence[T], limit: int, place_of: Callable[[T], str]) -> list[T]:
        """The entries of the page, in the order of the list, of up to one more that were found in that of the
        walk."""
        entries, is_more = list(found[:limit]), len(found) > limit
        if self.is_back:
            entries.reverse()
        has_before = is_more if self.is_back else "cursor" in self.page.query
        has_after = is_more or self.is_back
        self.first = self._at if has_before else 1
        self.last = self.first + len(entries) - 1
        if self.count is None and not has_before and not has_after:
            self.count = Count(len(entries))
        if entries and has_before:
            begins = max(1, self.first - limit)
            self.newer = self._url(cursor=next_cursor(place_of(entries[0])), back=1, at=begins)
        if entries and has_after:
            self.older = self._url(cursor=next_cursor(place_of(entries[-1])), at=self.last + 1)
        return entries

    def column(self, title: str) -> dict[str, str]:
        """The column by whose time the list is sorted, for `ui.table`: it leads to the other order."""
        other = NEWEST if self.sort == OLDEST else OLDEST
        return {
            "title": title,
            "url": self.page.url(self.path, **self._kept(), sort=other),
            "sorted": "ascending" if self.sort == OLDEST else "descending",
        }

    def _url(self, **where: object) -> str:
        return self.page.url(self.path, **self._kept(), sort=self.sort, **where)

    def _kept(self) -> dict[str, str]:
        return {name: self.page.query.get(name, "") for name in self.names}
