"""Cursors come back as they were given, and nothing else does."""

import pytest

from msgsvc_core.api.pagination import (
    after_cursor,
    bound_cursor,
    next_cursor,
    position_of,
    read_position,
    unbound_cursor,
)
from msgsvc_core.kernel.errors import BadRequest
from msgsvc_core.kernel.ids import new_id


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
