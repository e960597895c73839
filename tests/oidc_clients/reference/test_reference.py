"""The script of requests against the certified provider, and how two recordings are compared."""

from pathlib import Path

from tests.oidc_clients.reference.comparison import Difference, differences, table, unexplained
from tests.oidc_clients.reference.reasons import Reason
from tests.oidc_clients.reference.recordings import RECORDED, recorded
from tests.oidc_clients.reference.replay import replay
from tests.oidc_clients.reference.stand_in import reference_provider


async def test_the_certified_provider_answers_as_recorded(tmp_path: Path) -> None:
    with reference_provider(tmp_path, "post") as provider:
        recording = await replay(provider)

    assert differences(recorded(RECORDED, recording), recording) == []


THERE = {"a": {"status": 400, "members": ["error"]}, "b": {"status": 200}}
HERE = {"a": {"status": 401, "members": ["error"]}, "c": {"status": 200}}
FOUND = [
    Difference("a", "status", "400", "401"),
    Difference("b", "status", "200", "-"),
    Difference("c", "status", "-", "200"),
]


def test_differences_are_by_case_and_fact() -> None:
    assert differences(THERE, HERE) == FOUND
    assert differences(THERE, THERE) == []


def test_a_difference_without_a_reason_is_left_open() -> None:
    reasons = [
        Reason("the standard says so", ["a"], ["status"]),
        Reason("of before", ["a"], ["members"]),
    ]

    open_, unused = unexplained(FOUND, reasons)

    assert open_ == FOUND[1:]
    assert unused == [("a", "members")]


def test_the_table_has_a_row_for_each_difference() -> None:
    rows = table(FOUND, [Reason("a | b", ["a", "b"], ["status"])]).splitlines()

    assert len(rows) == 2 + len(FOUND)
    assert rows[2] == "| a | status | 400 | 401 | a \\| b |"
