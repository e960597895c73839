"""Unit tests run the real SQL: they neither script what a statement returns nor look at its text."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import ROOT, assert_none, files_in, name_of, tree_of

#: What a test would inherit from to answer statements by itself.
DATABASES = {"Database", "MemoryConnection", "MemoryReader", "SQLiteBackend", "Tx"}

#: Methods of a transaction. A test that replaces one sees statements.
STATEMENTS = {"execute", "execute_deferred", "fetch_all", "fetch_one", "fetch_val", "insert_many"}

#: The tests of the database layer itself, and of what records statements.
ABOUT_STATEMENTS = ("tests/unit/db/", "tests/unit/test_both_databases.py")


def faults(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef):
            bases = {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases}
            if bases & DATABASES:
                yield f"line {node.lineno}: {node.name} stands in for a database"
            methods = {each.name for each in node.body if isinstance(each, ast.AsyncFunctionDef)}
            if methods & STATEMENTS:
                yield f"line {node.lineno}: {node.name} answers statements"
        if isinstance(node, ast.Constant) and node.value in STATEMENTS:
            yield f"line {node.lineno}: names {node.value!r}, to replace it"


def test_no_unit_test_scripts_or_inspects_sql() -> None:
    unit_tests = [
        path
        for folder in ("tests", "plugins")
        for path in files_in(ROOT / folder, ".py")
        if {"tests", "unit"} <= set(path.parts) and not name_of(path).startswith(ABOUT_STATEMENTS)
    ]

    assert len(unit_tests) > 100
    assert_none(f"{name_of(path)}: {fault}" for path in unit_tests for fault in faults(path))
