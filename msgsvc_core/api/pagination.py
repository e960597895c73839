"""Cursors of lists: opaque to the client; internally the last id of the page."""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from msgsvc_core.api.endpoint import Query
from msgsvc_core.kernel.errors import BadRequest

T = TypeVar("T")

#: Characters of the prefix that binds a cursor to its list.
MARK_LENGTH = 8

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
    """One page of a list. Stores fetch `fetch_limit` rows after `after`, newest first."""

    limit: int = Field(default=50, ge=1, le=100, description="Entries per page.", examples=[50])
    cursor: str | None = Field(
        default=None,
        description="`next_cursor` of the previous page; without it, the first page.",
        examples=[CURSOR_EXAMPLE],
    )

    @property
    def after(self) -> str | None:
        """The id after which the page starts. Raises `BadRequest`."""
        return after_cursor(self.cursor)

    @property
    def fetch_limit(self) -> int:
        """One more than the page size, to show whether there is another page."""
        return self.limit + 1

    def cut(self, found: Sequence[T], id_of: Callable[[T], str]) -> tuple[list[T], str | None]:
        """The page of what a store found, and the cursor of the next one."""
        page = list(found[: self.limit])
        return page, next_cursor(id_of(page[-1])) if len(found) > self.limit else None


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
