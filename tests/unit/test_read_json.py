"""JSON that another host has sent: parsed as by the standard library, whichever parser reads it."""

import json

import pytest

from msgsvc_core.kernel.json import read_json


@pytest.mark.parametrize(
    "body",
    [
        b'{"ok": true, "result": {"message_id": 7}}',
        b'{"half": "\\ud83d"}',
        b'{"a": 1, "a": 2}',
        b'{"large": 123456789012345678901234567890, "fraction": 1e400}',
        b"\xef\xbb\xbf[]",
        '{"text": "приклад"}'.encode("utf-16"),
        '["\U0001f600"]'.encode(),
    ],
)
def test_it_is_what_the_standard_library_reads(body: bytes) -> None:
    assert read_json(body) == json.loads(body)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"<html>", b"9" * 5000])
def test_what_is_no_json_is_a_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|utf-8|digits|Expecting|value"):
        read_json(body)


def test_what_is_nested_too_deeply_is_an_error() -> None:
    with pytest.raises((ValueError, RecursionError)):
        read_json(b"[" * 100_000)
