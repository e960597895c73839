"""The page of walks names files that exist, and its counts are those of its lists."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/walks.md").read_text("utf-8")

#: The steps of each walk.
WALKS = {
    name: re.split(r"\s*>\s*", steps.strip())
    for name, steps in re.findall(r"```walk (\w+)\n(.*?)```", PAGE, re.DOTALL)
}
WHOLE = {**WALKS, "A": WALKS["A1"] + WALKS["A2"], "B": WALKS["B1"] + WALKS["B2"] + WALKS["B3"]}


@pytest.mark.parametrize("step", sorted({step for steps in WALKS.values() for step in steps}))
def test_every_step_is_a_file(step: str) -> None:
    plugin, _, rest = step.partition("/")
    found = [
        ROOT / "msgsvc_core" / f"{step}.py",
        *ROOT.glob(f"plugins/*/{plugin}/msgsvc_{plugin}/{rest}.py"),
    ]

    assert any(path.is_file() for path in found)


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_counts_are_those_of_the_list(name: str) -> None:
    steps = WHOLE[name]
    rooms = [step.split("/")[0] for step in steps]
    changes = sum(before != after for before, after in pairwise(rooms))

    row = f"| {name} | {len(steps)} | {len(set(steps))} | {len(set(rooms))} | {changes} |"
    assert row in PAGE
