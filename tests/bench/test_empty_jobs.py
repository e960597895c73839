"""The measure of empty jobs, for the shortest time that it takes."""

from pathlib import Path

from msgsvc_devkit.fixtures import backends_found
from tests.bench.empty_jobs import REFERENCE, measure


def test_every_case_that_is_possible_here_is_measured(tmp_path: Path) -> None:
    found = backends_found()
    expected = {"embedded, sqlite"}
    if found["redis"]:
        expected.add(REFERENCE)
    if found["postgres"]:
        expected.add("embedded, postgresql")
    if found["postgres"] and found["redis"]:
        expected.add("woken by dramatiq, postgresql")

    rates = measure(tmp_path, jobs=400, rounds=1)

    assert set(rates) == expected
    assert all(rate > 0 for rate in rates.values())
