"""docs/security.md names tests that there are, so that it claims nothing that no test shows."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")

#: `auth/tests/test_verify.py::test_wrong_code_is_refused`, a file by the end of its path.
NAMED = re.compile(r"`([\w/]+/test_\w+\.py)::(\w+)`")

NAMES = sorted(set(NAMED.findall(PAGE)))
ROWS = [
    line
    for line in PAGE.splitlines()
    # Rows of the tables of attacks, which have four columns, without their heads.
    if line.count(" | ") == 3 and not line.startswith(("| ---", "| what an attacker"))
]


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_the_page_names_tests() -> None:
    assert len(NAMES) > 50
    assert len(ROWS) > 40


@pytest.mark.parametrize(("file", "name"), NAMES, ids=[name for _, name in NAMES])
def test_a_named_test_is_there(file: str, name: str) -> None:
    paths = [
        path
        for folder in ("tests", "plugins", "examples")
        for path in ROOT.glob(f"{folder}/**/{Path(file).name}")
        if str(path).endswith(f"/{file}")
    ]

    assert len(paths) == 1, f"{file} is {len(paths)} files"
    assert name in names_in(paths[0])


@pytest.mark.parametrize("row", ROWS, ids=[row.split(" | ")[0].strip("| ")[:60] for row in ROWS])
def test_every_claim_has_its_test_and_says_what_the_deployer_does(row: str) -> None:
    _, stops, tests, deployer = (cell.strip("| ") for cell in row.split(" | "))

    assert stops
    assert NAMED.search(tests)
    assert deployer
