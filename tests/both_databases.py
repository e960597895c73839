"""Writes tests/both_databases.txt: the tests that run on PostgreSQL too in the short form.

    python -m tests.both_databases                  # runs the suite on SQLite, 10 minutes, and chooses
    python -m tests.both_databases --from FILE      # chooses by what an earlier run recorded

What is chosen, in this order:

- the folders in `FOLDERS`, which are about databases, and the tests whose names say that they are about
  transactions that meet;
- of the others as few as possible, the cheapest first, so that every statement that any test has the
  product run on SQLite is also run on PostgreSQL, each time with every case of the test.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
RECORDED = Path("build/statements.jsonl")

#: Stores, locks, claims, group commit, migrations, and what faults leave behind.
FOLDERS = ("tests/contracts/", "tests/faults/", "tests/api/idempotency/")

#: Two transactions meet: what one sees of the other is the database's.
_MEETING = re.compile(
    r"at_once|at_the_same_time|concurrent|simultaneous|race|meanwhile|lock|deadlock|postgres|two_processes"
    r"|other_process|beside|same_moment"
)

HEAD = """\
# Tests that run on PostgreSQL as well in the short form (`make test`); `make test-all` runs all on both.
# Written by `python -m tests.both_databases`: edit it for a test that was renamed, else write it anew.
# A test's functions below it are those whose SQL it was chosen for.
"""

Statement = tuple[str, str]


@dataclass
class Reached:
    """What one test function, with all its cases, has the product run, and what that costs."""

    cpu_s: float = 0.0
    statements: set[Statement] = field(default_factory=set)


def read_records(lines: Iterable[str]) -> dict[str, Reached]:
    """By test function, what its cases on SQLite recorded."""
    found: dict[str, Reached] = defaultdict(Reached)
    for line in lines:
        record = json.loads(line)
        if record["database"] == "sqlite":
            reached = found[record["test"]]
            reached.cpu_s += record["cpu_s"]
            reached.statements |= {(site, sql) for site, sql in record["statements"]}
    return found


def choose(tests: Mapping[str, Reached]) -> dict[str, set[Statement]]:
    """The chosen tests, each with the statements that no test before it runs."""
    left = set[Statement]().union(*(reached.statements for reached in tests.values()))
    chosen: dict[str, set[Statement]] = {}
    for name in sorted(tests):
        if name.startswith(FOLDERS):
            left -= tests[name].statements
        elif _MEETING.search(name.partition("::")[2]):
            chosen[name] = tests[name].statements & left
            left -= tests[name].statements
    while left:
        # Per second of the computer as many new statements as can be had; by name where two are alike.
        name = max(
            sorted(tests),
            key=lambda each: len(tests[each].statements & left) / max(tests[each].cpu_s, 0.01),
        )
        chosen[name] = tests[name].statements & left
        left -= tests[name].statements
    return chosen


def lines_of(chosen: Mapping[str, set[Statement]]) -> Iterator[str]:
    yield HEAD
    yield from (f"{folder}\n" for folder in FOLDERS)
    for name in sorted(chosen):
        yield f"{name}\n"
        yield from (f"    {site}\n" for site in sorted({site for site, _ in chosen[name]}))


def record(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    recording = ("-m", "not faults and not browser", "-k", "sqlite", "--record-statements", path)
    run = (sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-q", *recording)
    subprocess.run(run, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="recorded", type=Path, metavar="FILE")
    recorded = parser.parse_args().recorded
    if recorded is None:
        record(recorded := RECORDED)
    with recorded.open(encoding="utf-8") as file:
        chosen = choose(read_records(file))
    LIST.write_text("".join(lines_of(chosen)), encoding="utf-8")


if __name__ == "__main__":
    main()
