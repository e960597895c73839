"""Cursors of lists: opaque to the client; internally the last id of the page."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import Field

from msgsvc_core.api.endpoint import Query
from msgsvc_core.api.types import MomentMs
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.ids import creation_ms, earliest_id

T = TypeVar("T")

#: Characters of the prefix that binds a cursor to its list.
MARK_LENGTH = 8

#: Milliseconds by which the time in an id may differ from `created_at`: both are taken in one request.
SKEW_MS = 1000

_POSITION = re.compile(r"(\d{1,15})_((?:[0-9a-f]{2})+)", re.ASCII)


CURSOR_EXAMPLE = "0yKXPd_Jc3ViXzAzMmFKYW1xckJlT2tnWERVMTRoVFM"

NextCursor = Annotated[
    str | None,
    Field(
        description="Pass it as `cursor` to get the next page; null on the last page.",
        examples=[CURSOR_EXAMPLE],
    ),
]


class PageQuery(Query):
    """One page of a list. Stores fetch `fetch_limit` rows after `after`, newest first.

    A list by ids, which sort by time, starts at `begin(prefix)` instead, since `created_before` is a place in
    it. `cut` ends the page at `created_after`. Neither bound needs an index of its own.
    """

    limit: int = Field(default=50, ge=1, le=100, description="Entries per page.", examples=[50])
    cursor: str | None = Field(
        default=None,
        description="`next_cursor` of the previous page; without it, the first page.",
        examples=[CURSOR_EXAMPLE],
    )

    created_after: MomentMs | None = Field(
        default=None,
        description="Only what was created after this time.",
        examples=["2026-01-01T00:00:00Z"],
    )
    created_before: MomentMs | None = Field(
        default=None,
        description="Only what was created before this time.",
        examples=["2026-04-01T00:00:00Z"],
    )

    @property
    def after(self) -> str | None:
        """The id after which the page starts. Raises `BadRequest`."""
        return after_cursor(self.cursor)

    def begin(self, prefix: str) -> str | None:
        """The id after which the page starts in a list of ids with that prefix, newest first. Raises
        `BadRequest`."""
        places = (until_id(prefix, self.created_before), self.after)
        return min((place for place in places if place is not None), default=None)

    def begin_position(self) -> tuple[int, str] | None:
        """Time and name after which the page starts in a list by these. Raises `BadRequest`."""
        until = None if self.created_before is None else (self.created_before, "")
        places = (until, read_position(self.after))
        return min((place for place in places if place is not None), default=None)

    @property
    def fetch_limit(self) -> int:
        """One more than the page size, to show whether there is another page."""
        return self.limit + 1

    def cut(
        self,
        found: Sequence[T],
        id_of: Callable[[T], str],
        *,
        created_ms: Callable[[T], int] | None = None,
        by_time: bool = True,
    ) -> tuple[list[T], str | None]:
        """The page of what a store found, and the cursor of the next one.

        `created_ms` is when an entry was created; without it, its `created_at_ms`, or the time of its id. In
        a list that is not sorted `by_time`, what was created at another time is left out of its page.
        """
        page = list(found[: self.limit])
        goes_on = len(found) > self.limit
        cursor = next_cursor(id_of(page[-1])) if goes_on else None
        if self.created_after is None and self.created_before is None:
            return page, cursor
        times = [_created_ms(one, id_of) if created_ms is None else created_ms(one) for one in page]
        after = -1 if self.created_after is None else self.created_after
        before = math.inf if self.created_before is None else self.created_before
        if by_time and times and times[-1] + SKEW_MS <= after:
            # All that follow are older, also those whose id was made a moment before their time was taken.
            cursor = None
        return [one for one, ms in zip(page, times, strict=True) if after < ms < before], cursor


def until_id(prefix: str, created_before: int | None) -> str | None:
    """An id that follows those of everything created before a time; None without a time."""
    return None if created_before is None else earliest_id(prefix, created_before + SKEW_MS)


def _created_ms(entry: object, id_of: Callable[[Any], str]) -> int:
    found = getattr(entry, "created_at_ms", None)
    return found if isinstance(found, int) else creation_ms(id_of(entry))


def bound_cursor(cursor: str, list_name: str) -> str:
    """The cursor for the client, valid only for that list."""
    return _mark(list_name) + cursor


def unbound_cursor(cursor: str, list_name: str) -> str:
    """The cursor that was passed to `bound_cursor`. Raises `BadRequest` for a cursor of another list."""
    mark = _mark(list_name)
    if not cursor.startswith(mark):
        raise BadRequest("not one that this list gave", field="cursor")
    return cursor.removeprefix(mark)


def _mark(list_name: str) -> str:
    """Prefix of the list's cursors. It catches mistakes only: cursors are not secret, and every store query
    is limited to its project."""
    digest = hashlib.sha256(list_name.encode()).digest()
    return base64.urlsafe_b64encode(digest[:6]).decode()


def next_cursor(last_id: str) -> str:
    """The cursor that continues after `last_id`."""
    return base64.urlsafe_b64encode(last_id.encode()).decode().rstrip("=")


def after_cursor(cursor: str | None) -> str | None:
    """The id after which the page starts. Raises `BadRequest` for a malformed cursor."""
    if cursor is None:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, UnicodeError, ValueError):
        text = ""
    if not text.replace("_", "").isalnum():
        raise BadRequest("not one that this service gave", field="cursor")
    return text


def position_of(created_at_ms: int, name: str) -> str:
    """A cursor position by time and name, for entries without an id."""
    return f"{created_at_ms}_{name.encode().hex()}"


def read_position(after: str | None) -> tuple[int, str] | None:
    """Time and name of a position made by `position_of`. Raises `BadRequest` for anything else."""
    if after is None:
        return None
    match = _POSITION.fullmatch(after)
    try:
        if match is not None and "\0" not in (name := bytes.fromhex(match[2]).decode()):
            return int(match[1]), name
    except UnicodeDecodeError:
        pass
    raise BadRequest("not one that this service gave", field="cursor")
