"""The list of payloads is what it says."""

from tests.payloads import LONG, NAMES, PAYLOADS


def test_there_are_sixty_names_that_can_stand_anywhere() -> None:
    assert len(NAMES) == len(set(NAMES)) == 60
    assert all(len(name) <= 64 and not set(name) & {"/", "\0", "\n", "\r"} for name in NAMES)
    assert set(PAYLOADS) == {*NAMES, *LONG}
