"""Key figures beside those of the period before."""

import pytest

from msgsvc_dashboard.overview.tiles import Level, Tile


def test_a_count_changes_relative_to_the_period_before() -> None:
    tile = Tile("Sign-ins", [20, 20, 30, 30])

    assert (tile.value, tile.change, tile.tone) == (60, 0.5, "good")


def test_a_share_changes_by_shares() -> None:
    tile = Tile("Delivery rate", [9, 9, 8, 8], of=[10, 10, 10, 10])

    assert tile.value == pytest.approx(0.8)
    assert tile.change == pytest.approx(-0.1)
    assert tile.tone == "bad"


@pytest.mark.parametrize(
    ("values", "of"),
    [
        ([0, 0, 4, 4], None),
        ([4, 5, 40, 40], None),
        ([4, 4, 40, 40], [5, 4, 50, 50]),
        ([0, 0, 4, 4], [0, 0, 5, 5]),
        ([1, 1, 0, 0], [1, 1, 0, 0]),
    ],
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


def test_a_level_is_the_last_one_and_changes_from_the_end_of_the_period_before() -> None:
    level = Level("Active subscribers", [0, 100, 0, 120, 0, 150])

    # On two days none was recorded.
    assert (level.value, level.change, level.tone) == (150, 0.5, "good")
    assert level.line == "0,6.8 100,2"


@pytest.mark.parametrize("values", [[0, 0, 0, 8], [0, 0, 0, 0]])
def test_a_level_that_was_never_recorded_before_has_no_change(values: list[int]) -> None:
    level = Level("Active subscribers", values)

    assert (level.value, level.change, level.line) == (values[-1] or None, None, "")
