"""Plugins use what a stranger's plugin can use: the modules of the core that the reference names."""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from msgsvc_core.plugins.public import PUBLIC_MODULES, PUBLIC_PACKAGES, is_public

ROOT = Path(__file__).parents[2]

#: The plugins, and those that the guides show.
SOURCES = sorted([*ROOT.glob("plugins/*/*/msgsvc_*/**/*.py"), *ROOT.glob("examples/own_*/**/*.py")])


def imported(path: Path) -> Iterator[str]:
    """Modules of the core that a file imports, those within functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import module` imports the module.
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if is_module(inner) else node.module


def is_module(name: str) -> bool:
    folder = ROOT.joinpath(*name.split("."))
    return folder.with_suffix(".py").is_file() or (folder / "__init__.py").is_file()


def test_plugins_import_public_modules_alone() -> None:
    inside = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in SOURCES
        if "tests" not in path.parts
        for module in imported(path)
        if module.startswith("msgsvc_core.") and not is_public(module)
    }

    assert inside == set()


@pytest.mark.parametrize("module", [*PUBLIC_MODULES, *PUBLIC_PACKAGES])
def test_a_public_module_is_there_and_has_no_sql(module: str) -> None:
    assert find_spec(module) is not None
    assert not module.endswith("store")


def test_the_list_of_public_modules_is_in_order() -> None:
    assert list(PUBLIC_MODULES) == sorted(set(PUBLIC_MODULES))
    assert [module for module in PUBLIC_MODULES if module.startswith(PUBLIC_PACKAGES)] == []
