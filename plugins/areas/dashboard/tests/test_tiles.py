"""Key figures beside those of the period before."""

import pytest

from msgsvc_dashboard.overview.tiles import Tile


def test_a_count_changes_relative_to_the_period_before() -> None:
    tile = Tile("Sign-ins", [2, 2, 3, 3])

    assert (tile.value, tile.change, tile.tone) == (6, 0.5, "good")


def test_a_share_changes_by_shares() -> None:
    tile = Tile("Delivery rate", [9, 9, 8, 8], of=[10, 10, 10, 10])

    assert tile.value == pytest.approx(0.8)
    assert tile.change == pytest.approx(-0.1)
    assert tile.tone == "bad"


@pytest.mark.parametrize(
    ("values", "of"),
    [([0, 0, 4, 4], None), ([0, 0, 4, 4], [0, 0, 5, 5]), ([1, 1, 0, 0], [1, 1, 0, 0])],
)
def test_what_cannot_be_compared_has_no_change(values: list[int], of: list[int] | None) -> None:
    tile = Tile("Anything", values, of)

    assert (tile.change, tile.tone) == (None, "")


def test_the_line_has_the_days_that_are_over_and_leaves_out_shares_of_nothing() -> None:
    counts = Tile("Sign-ins", [0] * 4 + [2, 4, 0, 9])
    shares = Tile("Delivery rate", [0] * 4 + [1, 0, 2, 9], of=[0] * 4 + [2, 0, 2, 9])

    assert counts.line == "0,14 50,2 100,26"
    assert shares.line == "0,14 100,2"
    assert Tile("Nothing", [0] * 8).line == ""
