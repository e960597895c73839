"""docs/security.md names tests that there are, so that it claims nothing that no test shows."""

import re
from pathlib import Path

from tests.architecture.tree import ROOT, assert_none, files_in, source_of

#: `auth/tests/test_verify.py::test_wrong_code_is_refused`, a file by the end of its path.
NAMED = re.compile(r"`([\w/]+/test_\w+\.py)::(\w+)`")


def page() -> str:
    return source_of(ROOT / "docs" / "security.md")


def test_named_tests_are_there() -> None:
    folders = ("tests", "plugins", "examples")
    tests = [str(path) for folder in folders for path in files_in(ROOT / folder, ".py")]
    names = set(NAMED.findall(page()))
    missing = []
    for file, name in sorted(names):
        paths = [path for path in tests if path.endswith(f"/{file}")]
        if len(paths) != 1:
            missing.append(f"{file} is {len(paths)} files")
        elif not re.search(rf"(?m)^ *(?:async )?def {name}\(", source_of(Path(paths[0]))):
            missing.append(f"{file} has no {name}")

    assert len(names) > 50
    assert_none(missing)


def test_every_claim_has_its_test_and_says_what_the_deployer_does() -> None:
    rows = [
        line
        for line in page().splitlines()
        # Rows of the tables of attacks, which have four columns, without their heads.
        if line.count(" | ") == 3 and not line.startswith(("| ---", "| what an attacker"))
    ]
    incomplete = []
    for row in rows:
        _, stops, tests, deployer = (cell.strip("| ") for cell in row.split(" | "))
        if not (stops and NAMED.search(tests) and deployer):
            incomplete.append(row)

    assert len(rows) > 40
    assert_none(incomplete)
