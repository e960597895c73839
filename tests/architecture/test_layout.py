"""The tree is what docs/architecture.md says it is."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [ROOT / "msgsvc_core", *sorted(ROOT.glob("plugins/*/*/msgsvc_*"))]
MODULES = [
    path
    for package in PACKAGES
    for path in sorted(package.rglob("*.py"))
    if "migrations" not in path.parts
]
PLUGINS = [package.parent for package in PACKAGES[1:]]
TEST_MODULES = [
    path
    for folder in ("tests", "plugins/*/*/tests", "examples/*/tests")
    for path in sorted(ROOT.glob(f"{folder}/**/*.py"))
]

#: Names that say nothing of what a module holds.
NO_NOUNS = {"utils", "util", "helpers", "common", "misc", "shared", "base"}

#: Lines beyond which a module, one of tests too, asks to be split.
MOST_LINES = 400

#: Lines of a plugin's door: hook implementations that hand on to a neighbour file.
MOST_DOOR_LINES = 80


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*MODULES, *TEST_MODULES], ids=name_of)
def test_a_module_has_a_noun_a_docstring_and_a_readable_length(path: Path) -> None:
    source = path.read_text(encoding="utf-8")

    assert path.stem not in NO_NOUNS
    assert ast.get_docstring(ast.parse(source))
    assert source.count("\n") <= MOST_LINES


@pytest.mark.parametrize(
    "path", [path for path in MODULES if path.name == "__init__.py"], ids=name_of
)
def test_an_init_only_exports_again(path: Path) -> None:
    statements = ast.parse(path.read_text(encoding="utf-8")).body[1:]

    # An `if` holds what is imported for type checkers alone.
    assert all(isinstance(one, ast.ImportFrom | ast.Assign | ast.If) for one in statements)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_the_database_package_imports_databases(path: Path) -> None:
    imported = {
        name.partition(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom) and not node.level
            else []
        )
    }

    assert "databases" not in imported or path.parent == ROOT / "msgsvc_core" / "db"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_middleware_wraps_requests_in_tasks(path: Path) -> None:
    # Starlette's BaseHTTPMiddleware cost 80 % of the throughput. Docstrings may name it.
    names = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
    }

    assert "BaseHTTPMiddleware" not in names


@pytest.mark.parametrize("folder", PLUGINS, ids=name_of)
def test_a_plugin_has_the_anatomy_of_all(folder: Path) -> None:
    package = next(folder.glob("msgsvc_*"))
    door = package / "plugin.py"

    assert (folder / "README.md").read_text(encoding="utf-8").count("\n") > 10
    assert f'= "{package.name}.plugin"' in (folder / "pyproject.toml").read_text(encoding="utf-8")
    assert door.read_text(encoding="utf-8").count("\n") <= MOST_DOOR_LINES
    assert list((folder / "tests").glob("test_*.py"))


def test_the_top_level_is_the_agreed_one() -> None:
    folders = {
        path.name
        for path in ROOT.iterdir()
        if path.is_dir() and not path.name.startswith((".", "__")) and path.name != "build"
    }

    assert folders == {"msgsvc_core", "plugins", "contrib", "docs", "tests", "examples"}
