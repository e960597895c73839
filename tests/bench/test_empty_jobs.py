"""The measure of empty jobs, for the shortest time that it takes."""

from pathlib import Path

from msgsvc_devkit.machine import has
from tests.bench.empty_jobs import REFERENCE, measure


def test_every_case_that_is_possible_here_is_measured(tmp_path: Path) -> None:
    expected = {"embedded, sqlite"}
    if has("redis"):
        expected.add(REFERENCE)
    if has("postgres"):
        expected.add("embedded, postgresql")
    if has("postgres") and has("redis"):
        expected.add("woken by dramatiq, postgresql")

    rates = measure(tmp_path, jobs=400, rounds=1)

    assert set(rates) == expected
    assert all(rate > 0 for rate in rates.values())
