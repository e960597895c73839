"""The measurement of what is due at one moment, for the shortest time that it takes."""

from tests.bench.uptake import main


def test_all_that_is_due_is_taken_up_and_measured() -> None:
    sizes = ["--people", "20", "--chain", "20", "--messages", "200"]

    found = {one.name: one for one in main(["--databases", "sqlite", *sizes])}

    for what in ("steps, text", "steps, template", "scheduled"):
        assert (found[f"{what}, sqlite: CPU µs each"].value or 0) > 0
    for action in ("pause", "resume", "delete"):
        assert found[f"{action} of a chain of 20, sqlite: s"].alone
