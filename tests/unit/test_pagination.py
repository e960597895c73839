"""Cursors come back as they were given, and nothing else does."""

import pytest

from msgsvc_core.api.pagination import after_cursor, next_cursor
from msgsvc_core.errors import BadRequest
from msgsvc_core.ids import new_id


def test_a_cursor_leads_back_to_its_id() -> None:
    last_id = new_id("msg")

    assert after_cursor(next_cursor(last_id)) == last_id


def test_without_a_cursor_the_list_begins_at_its_top() -> None:
    assert after_cursor(None) is None


@pytest.mark.parametrize("cursor", ["", "!", "=", "abc", "\u00e9", "JyBPUiAx", "AAAA", "a" * 5000])
def test_a_foreign_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadRequest, match="cursor"):
        after_cursor(cursor)
