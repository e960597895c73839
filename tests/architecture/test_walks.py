"""The page of walks names files that exist, and its counts are those of its lists."""

import re
from itertools import pairwise

from tests.architecture.tree import CORE, ROOT, assert_none, source_of

PAGE = ROOT / "docs" / "walks.md"


def walks() -> dict[str, list[str]]:
    """The steps of each walk."""
    lists = re.findall(r"```walk (\w+)\n(.*?)```", source_of(PAGE), re.DOTALL)
    return {name: re.split(r"\s*>\s*", steps.strip()) for name, steps in lists}


def is_file(step: str) -> bool:
    plugin, _, rest = step.partition("/")
    return (CORE / f"{step}.py").is_file() or any(
        ROOT.glob(f"plugins/*/{plugin}/msgsvc_{plugin}/{rest}.py")
    )


def test_every_step_is_a_file() -> None:
    steps = {step for steps in walks().values() for step in steps}

    assert len(steps) > 100
    assert_none(step for step in steps if not is_file(step))


def test_counts_are_those_of_the_lists() -> None:
    found = walks()
    found |= {"A": found["A1"] + found["A2"], "B": found["B1"] + found["B2"] + found["B3"]}
    rows = []
    for name, steps in found.items():
        rooms = [step.split("/")[0] for step in steps]
        changes = sum(before != after for before, after in pairwise(rooms))
        rows.append(
            f"| {name} | {len(steps)} | {len(set(steps))} | {len(set(rooms))} | {changes} |"
        )

    assert_none(row for row in rows if row not in source_of(PAGE))
