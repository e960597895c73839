"""Cursors come back as they were given, and nothing else does."""

import pytest

from msgsvc_core.api.pagination import (
    SKEW_MS,
    PageQuery,
    after_cursor,
    bound_cursor,
    next_cursor,
    position_of,
    read_position,
    unbound_cursor,
)
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.ids import creation_ms, new_id, stamped_by
from msgsvc_core.kernel.values import value_object


def test_a_cursor_leads_back_to_its_id() -> None:
    last_id = new_id("msg")

    assert after_cursor(next_cursor(last_id)) == last_id


def test_without_a_cursor_the_list_begins_at_its_top() -> None:
    assert after_cursor(None) is None


@pytest.mark.parametrize("cursor", ["", "!", "=", "abc", "\u00e9", "JyBPUiAx", "AAAA", "a" * 5000])
def test_a_foreign_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadRequest, match="cursor"):
        after_cursor(cursor)


@pytest.mark.parametrize("name", ["vip", "постоянный", "a-b_c", "常連"])
def test_a_place_by_time_and_name_goes_through_a_cursor(name: str) -> None:
    cursor = next_cursor(position_of(1_768_478_400_000, name))

    assert read_position(after_cursor(cursor)) == (1_768_478_400_000, name)


@pytest.mark.parametrize(
    "after",
    ["", "sub_1", "1_", "1_6", "1_zz", "1_ff", "1_00", "-1_61", "1" * 16 + "_61", "1_61_61"],
)
def test_an_id_is_no_place_by_time_and_name(after: str) -> None:
    with pytest.raises(BadRequest, match="cursor"):
        read_position(after)


def test_a_bound_cursor_is_read_by_its_list_alone() -> None:
    cursor = bound_cursor("abc", "/v1/messages")

    assert unbound_cursor(cursor, "/v1/messages") == "abc"
    with pytest.raises(BadRequest, match="this list"):
        unbound_cursor(cursor, "/v1/templates")


@value_object
class _Entry:
    entry_id: str
    created_at_ms: int


def _entry(id_ms: int, created_at_ms: int) -> _Entry:
    with stamped_by(lambda: id_ms * 1_000_000):
        return _Entry(new_id("msg"), created_at_ms)


def _cut(found: list[_Entry], created_after: int) -> tuple[list[_Entry], str | None]:
    query = PageQuery.model_construct(
        limit=1, cursor=None, created_after=created_after, created_before=None
    )
    return query.cut(found, lambda entry: entry.entry_id)


def test_a_page_goes_on_to_an_entry_whose_id_is_older_than_its_time() -> None:
    first, late = _entry(1_002, 1_002), _entry(1_001, 1_005)

    page, cursor = _cut([first, late], 1_003)

    assert creation_ms(first.entry_id) > creation_ms(late.entry_id)
    assert (page, cursor) == ([], next_cursor(first.entry_id))
    assert _cut([late], 1_003) == ([late], None)


def test_a_page_ends_where_everything_older_was_created_before_the_bound() -> None:
    found = [_entry(5_000, 5_000), _entry(4_000, 4_000)]

    assert _cut(found, 5_000 + SKEW_MS) == ([], None)
