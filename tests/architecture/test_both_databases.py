"""Which tests run on both databases in the short form, and how they are chosen."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from msgsvc_devkit.both_databases import read_chosen
from tests.both_databases import FOLDERS, LIST, choose, lines_of, read_records

ROOT = Path(__file__).parents[2]


def recorded(test: str, *statements: str, cpu_s: float = 0.1, database: str = "sqlite") -> str:
    sites = [["shop.store:page", sql] for sql in statements]
    return json.dumps({"test": test, "database": database, "cpu_s": cpu_s, "statements": sites})


def functions_in(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            # A suite's tests are those of the class that it inherits from.
            yield node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name


@pytest.mark.parametrize("file", sorted({name.partition("::")[0] for name in read_chosen(LIST)}))
def test_what_the_list_names_is_there(file: str) -> None:
    named = {name.split("::")[1] for name in read_chosen(LIST) if name.startswith(f"{file}::")}

    assert (ROOT / file).exists(), "it was moved: edit tests/both_databases.txt"
    assert not named or named <= set(functions_in(ROOT / file)), "edit tests/both_databases.txt"


def test_every_statement_is_run_by_the_cheapest_tests_that_run_it() -> None:
    lines = [
        recorded("tests/test_a.py::test_all", "SELECT 1", "SELECT 2", cpu_s=0.1),
        recorded("tests/test_a.py::test_one", "SELECT 1", cpu_s=0.08),
        recorded("tests/test_a.py::test_slow", "SELECT 2", "SELECT 3", cpu_s=9.0),
        recorded("tests/test_a.py::test_elsewhere", "SELECT 4", database="postgresql"),
    ]

    chosen = choose(read_records(lines))

    assert set(chosen) == {"tests/test_a.py::test_all", "tests/test_a.py::test_slow"}


def test_what_a_folder_of_databases_runs_needs_no_other_test() -> None:
    lines = [
        recorded(f"{FOLDERS[0]}test_claims.py::test_one", "SELECT 1"),
        recorded("tests/test_a.py::test_one", "SELECT 1"),
    ]

    assert choose(read_records(lines)) == {}


def test_transactions_that_meet_are_always_chosen() -> None:
    lines = [
        recorded("tests/test_a.py::test_all", "SELECT 1", "SELECT 2"),
        recorded("tests/test_a.py::test_two_at_once", "SELECT 1", cpu_s=9.0),
    ]

    assert "tests/test_a.py::test_two_at_once" in choose(read_records(lines))


def test_the_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    chosen = {"tests/test_a.py::test_one": {("shop.store:page", "SELECT 1")}}

    path.write_text("".join(lines_of(chosen)), encoding="utf-8")

    assert read_chosen(path) == {*FOLDERS, "tests/test_a.py::test_one"}
