"""The tree is what docs/architecture.md says it is."""

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.architecture.tree import (
    CORE,
    ROOT,
    assert_none,
    files_in,
    modules,
    name_of,
    packages,
    plugin_packages,
    source_of,
    tree_of,
)

#: Names that say nothing of what a module holds.
NO_NOUNS = {"utils", "util", "helpers", "common", "misc", "shared", "base"}

#: A docstring with a text in it, after comments.
DOCSTRING = re.compile(r'(?:#.*\n|\s*\n)*r?"""\s*[^\s"]')

#: An import of `databases` or of a module in it.
IMPORTS_DATABASES = re.compile(r"(?m)^\s*(?:from|import)\s+(?:[\w., ]+,\s*)?databases\b")


def all_tests() -> list[Path]:
    folders = (ROOT / "tests", *ROOT.glob("plugins/*/*/tests"), *ROOT.glob("examples/*/tests"))
    return [path for folder in folders for path in files_in(folder, ".py")]


def which(paths: Iterable[Path], broken: Callable[[Path], object]) -> list[str]:
    """The names of those that `broken` is true of."""
    found = list(paths)
    assert found, "there is nothing to look at"
    return [name_of(path) for path in found if broken(path)]


def test_a_module_has_a_noun_and_a_docstring() -> None:
    files = [*modules(), *all_tests()]

    assert_none(which(files, lambda path: path.stem in NO_NOUNS))
    assert_none(which(files, lambda path: not DOCSTRING.match(source_of(path))))


def test_every_package_says_that_it_is_typed() -> None:
    assert_none(which(packages(), lambda package: not (package / "py.typed").is_file()))


def test_an_init_only_exports_again() -> None:
    def does_more(path: Path) -> bool:
        # An `if` holds what is imported for type checkers alone.
        exporting = ast.ImportFrom | ast.Assign | ast.If
        return not all(isinstance(one, exporting) for one in tree_of(path).body[1:])

    assert_none(which((path for path in modules() if path.name == "__init__.py"), does_more))


def test_only_the_database_package_imports_databases() -> None:
    inside = CORE / "db"
    importing = [path for path in modules() if IMPORTS_DATABASES.search(source_of(path))]

    assert any(path.parent == inside for path in importing)
    assert_none(which(importing, lambda path: path.parent != inside))


def test_no_middleware_wraps_requests_in_tasks() -> None:
    # Starlette's BaseHTTPMiddleware cost 80 % of the throughput. Docstrings may name it.
    def names_it(path: Path) -> bool:
        return "BaseHTTPMiddleware" in source_of(path) and any(
            (node.id if isinstance(node, ast.Name) else node.attr) == "BaseHTTPMiddleware"
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Name | ast.Attribute)
        )

    assert_none(which(modules(), names_it))


def test_fault_tests_are_where_make_looks_for_them() -> None:
    marked = (path for path in all_tests() if "mark.faults" in source_of(path))
    here = Path(__file__)

    assert_none(
        which(marked, lambda path: path.parent != ROOT / "tests" / "faults" and path != here)
    )


def test_a_plugin_has_the_anatomy_of_all() -> None:
    wrong = []
    for package in plugin_packages():
        folder = package.parent
        entry_point = f'= "{package.name}.plugin"'
        for what, is_there in {
            "a README": source_of(folder / "README.md").count("\n") > 10,
            "its entry point": entry_point in source_of(folder / "pyproject.toml"),
            "hooks in plugin.py": "hookimpl" in source_of(package / "plugin.py"),
            "tests": any((folder / "tests").glob("test_*.py")),
        }.items():
            if not is_there:
                wrong.append(f"{name_of(folder)} lacks {what}")

    assert_none(wrong)


def test_the_top_level_is_the_agreed_one() -> None:
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir()
        and not path.name.startswith((".", "__"))
        and path.name not in {"build", "dist"}
    }

    assert folders == {"msgsvc_core", "plugins", "contrib", "docs", "tests", "examples"}
