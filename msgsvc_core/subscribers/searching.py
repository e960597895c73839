"""Search by the prefix of a name, username or `external_id`, ignoring case.

The search terms are stored beside each subscriber as `folded` makes them, because SQLite's lower() only
knows ASCII. Each of the three has an index that is scanned in order, so a page reads few rows however many
match: that order is the list's. A subscriber matched by several of the three is listed once, at the first.
See docs/decisions/0044-lists-of-a-million.md.
"""

from collections.abc import Sequence
from typing import Any

from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.unicode_text import MAX_NORMALIZED, normalized

#: Characters of a name that are indexed for search.
MOST = 64

#: A subscriber's fields, and their search columns.
COLUMNS = {
    "first_name": "search_name",
    "username": "search_username",
    "external_id": "search_external_id",
}

#: Upper bound of all texts with the prefix.
_LAST = "\U0010ffff"


def folded(text: str) -> str:
    """A text in normalized form for search: without differences of case, Unicode form and spaces, and
    without `@`."""
    # No more than can matter of it: few characters are composed of more than four.
    begins = " ".join(text[: 16 * MAX_NORMALIZED].split())[:MAX_NORMALIZED]
    plain = (normalized("NFKC", begins) or "").casefold()
    return " ".join(plain.split()).removeprefix("@")[:MOST]


def columns_of(**fields: str | None) -> dict[str, str | None]:
    """The values of the search columns, for those fields of a subscriber that are given."""
    return {
        COLUMNS[name]: None if value is None else folded(value) for name, value in fields.items()
    }


def place_of(text: str, subscriber_id: str, *fields: str | None) -> str:
    """The position in the list of a search, for the cursor."""
    names = [folded(field) for field in fields if field is not None]
    found = min((name for name in names if name.startswith(folded(text))), default="")
    return f"{found.encode().hex()}_{subscriber_id}"


def read_place(after: str | None) -> tuple[str, str] | None:
    """The name and the id of a position made by `place_of`. Raises `BadRequest` for anything else."""
    if after is None:
        return None
    name, _, subscriber_id = after.partition("_")
    try:
        found = bytes.fromhex(name).decode()
    except ValueError:
        found = "\0"
    if "\0" in found or not subscriber_id:
        raise BadRequest("not one that this service gave for this search", field="cursor")
    return found, subscriber_id


def search_of(text: str, after: tuple[str, str] | None) -> tuple[dict[str, str], dict[str, Any]]:
    """For each search column the condition on a subscriber `s`; and the parameters."""
    params: dict[str, Any] = {"begins": folded(text), "ends": folded(text) + _LAST}
    if after is not None:
        params["after_name"], params["after"] = after
    conditions = {}
    for column in COLUMNS.values():
        conditions[column] = f"s.{column} >= :begins AND s.{column} < :ends"
        if after is not None:
            conditions[column] += f" AND (s.{column}, s.subscriber_id) > (:after_name, :after)"
    return conditions, params


def is_first(text: str, place: int, names: Sequence[str | None]) -> bool:
    """Whether, among a subscriber's names in the search columns, the one at `place` is the first match."""
    begins = folded(text)
    found = [(name, at) for at, name in enumerate(names) if name and name.startswith(begins)]
    return not found or min(found)[1] == place
