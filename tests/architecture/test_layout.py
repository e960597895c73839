"""The tree is what docs/architecture.md says it is."""

import ast
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN_PACKAGES = sorted(ROOT.glob("plugins/*/*/msgsvc_*"))
PACKAGES = [
    ROOT / "msgsvc_core",
    *PLUGIN_PACKAGES,
    ROOT / "contrib" / "devkit" / "msgsvc_devkit",
]
MODULES = [
    path
    for package in PACKAGES
    for path in sorted(package.rglob("*.py"))
    if "migrations" not in path.parts
]
PLUGINS = [package.parent for package in PLUGIN_PACKAGES]
TEST_MODULES = [
    path
    for folder in ("tests", "plugins/*/*/tests", "examples/*/tests")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
]

#: Names that say nothing of what a module holds.
NO_NOUNS = {"utils", "util", "helpers", "common", "misc", "shared", "base"}


@cache
def source_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(source_of(path))


def which(paths: Iterable[Path], broken: Callable[[Path], object]) -> list[str]:
    """The names of those that `broken` is true of. One test looks at thousands of modules by it."""
    found = list(paths)
    assert found, "there is nothing to look at"
    return [str(path.relative_to(ROOT)) for path in found if broken(path)]


def test_a_module_has_a_noun_and_a_docstring() -> None:
    modules = [*MODULES, *TEST_MODULES]

    assert which(modules, lambda path: path.stem in NO_NOUNS) == []
    assert which(modules, lambda path: not ast.get_docstring(tree_of(path))) == []


def test_every_package_says_that_it_is_typed() -> None:
    assert which(PACKAGES, lambda package: not (package / "py.typed").is_file()) == []


def test_an_init_only_exports_again() -> None:
    def does_more(path: Path) -> bool:
        # An `if` holds what is imported for type checkers alone.
        exporting = ast.ImportFrom | ast.Assign | ast.If
        return not all(isinstance(one, exporting) for one in tree_of(path).body[1:])

    assert which((path for path in MODULES if path.name == "__init__.py"), does_more) == []


def test_only_the_database_package_imports_databases() -> None:
    def imports_it(path: Path) -> bool:
        imported = {
            name.partition(".")[0]
            for node in ast.walk(tree_of(path))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
        }
        return "databases" in imported

    outside = (path for path in MODULES if path.parent != ROOT / "msgsvc_core" / "db")

    assert which(outside, imports_it) == []


def test_no_middleware_wraps_requests_in_tasks() -> None:
    # Starlette's BaseHTTPMiddleware cost 80 % of the throughput. Docstrings may name it.
    def names_it(path: Path) -> bool:
        return any(
            (node.id if isinstance(node, ast.Name) else node.attr) == "BaseHTTPMiddleware"
            for node in ast.walk(tree_of(path))
            if isinstance(node, ast.Name | ast.Attribute)
        )

    assert which(MODULES, names_it) == []


def test_fault_tests_are_where_make_looks_for_them() -> None:
    marked = (path for path in TEST_MODULES if "mark.faults" in source_of(path))
    here = Path(__file__)

    assert (
        which(marked, lambda path: path.parent != ROOT / "tests" / "faults" and path != here) == []
    )


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_a_plugin_has_the_anatomy_of_all(folder: Path) -> None:
    package = next(folder.glob("msgsvc_*"))
    door = package / "plugin.py"

    assert (folder / "README.md").read_text(encoding="utf-8").count("\n") > 10
    assert f'= "{package.name}.plugin"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    assert "hookimpl" in door.read_text(encoding="utf-8")
    assert list((folder / "tests").glob("test_*.py"))


def test_the_top_level_is_the_agreed_one() -> None:
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir()
        and not path.name.startswith((".", "__"))
        and path.name not in {"build", "dist"}
    }

    assert folders == {"msgsvc_core", "plugins", "contrib", "docs", "tests", "examples"}
