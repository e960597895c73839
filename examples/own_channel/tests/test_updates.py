"""What is no update is told apart, whatever it is."""

import json
from typing import Any

import pytest

from msgsvc_letterbox.updates import UnreadableUpdate, read_update


@pytest.mark.parametrize(
    "found",
    [
        ["user", "kind"],
        "text",
        {"kind": "text", "text": "hello"},
        {"kind": "text", "user": "ann", "text": 5},
        {"kind": "start", "user": "ann", "payload": {"a": 1}},
        {"kind": "edit", "user": "ann", "ref": None, "text": "hello"},
        {"kind": "button", "user": "ann", "ref": "1", "data": ["yes"]},
        {"kind": "wave", "user": "ann"},
    ],
)
def test_what_is_no_update_is_unreadable(found: Any) -> None:
    with pytest.raises(UnreadableUpdate):
        read_update("1", json.dumps(found).encode())


def test_what_is_no_json_is_unreadable() -> None:
    with pytest.raises(UnreadableUpdate):
        read_update("1", b"\xff{")
