"""JSON of strangers: what is refused before it is parsed."""

import pytest

from msgsvc_core.api.json_input import MAX_ITEMS, MAX_MARKS, MAX_NAMES, MAX_OBJECTS, parse_json
from msgsvc_core.kernel.errors import ValidationFailed


@pytest.mark.parametrize("unit", [b"{},", b"[],", b"0,", b'{"a":0},'])
def test_a_body_of_more_values_than_any_request_needs_is_not_parsed(unit: bytes) -> None:
    # That it is broken is not noticed.
    with pytest.raises(ValidationFailed, match=f"more than {MAX_MARKS} commas"):
        parse_json(b"[" + unit * MAX_MARKS)


def test_the_largest_lists_of_requests_are_parsed() -> None:
    ids = b",".join(b'"sub_%d"' % number for number in range(10_000))

    assert len(parse_json(b'{"subscriber_ids":[' + ids + b"]}")["subscriber_ids"]) == 10_000


def test_an_object_has_an_end_of_names_and_an_array_of_items() -> None:
    names = b",".join(b'"%d":0' % number for number in range(MAX_NAMES + 1))
    with pytest.raises(ValidationFailed, match="more than 5000 names"):
        parse_json(b'{"text":{' + names + b"}}")
    with pytest.raises(ValidationFailed, match="more than 20000 items"):
        parse_json(b'{"ids":[' + b"0," * MAX_ITEMS + b"0]}")
    with pytest.raises(ValidationFailed, match="more than 3000 items"):
        parse_json(b'{"buttons":[[' + b"{}," * MAX_OBJECTS + b"{}]]}")
