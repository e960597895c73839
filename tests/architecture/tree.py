"""The files of the repository, each listed, read and parsed at most once in a process.

Parsing all modules takes seconds and 240 MB. A check that looks for names therefore searches the source
first, and parses only the modules in which a name is found.
"""

import ast
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "msgsvc_core"

#: What other projects made, and what Python makes.
_NOT_OURS = {"node_modules", "__pycache__"}


@cache
def files_in(folder: Path, *suffixes: str) -> tuple[Path, ...]:
    """The files below a folder that have one of these suffixes, in order."""
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_OURS]
        found += [Path(parent, name) for name in names if name.endswith(suffixes)]
    return tuple(sorted(found))


@cache
def plugin_packages() -> tuple[Path, ...]:
    return tuple(sorted(ROOT.glob("plugins/*/*/msgsvc_*")))


@cache
def packages() -> tuple[Path, ...]:
    """The core, the plugins, and the devkit."""
    return (CORE, *plugin_packages(), ROOT / "contrib" / "devkit" / "msgsvc_devkit")


@cache
def modules() -> tuple[Path, ...]:
    """The modules of all packages without their migrations."""
    found = (path for package in packages() for path in files_in(package, ".py"))
    return tuple(path for path in found if "migrations" not in path.parts)


@cache
def source_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(source_of(path))


def strings_of(path: Path) -> Iterator[str]:
    """The texts of a module, those of f-strings too, without docstrings and others that are statements."""
    prose = {id(node.value) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def name_of(path: Path) -> str:
    """The path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def assert_none(problems: Iterable[object], advice: str = "") -> None:
    """Fails with all problems, one a line: of a comparison of lists, pytest shows a few."""
    __tracebackhide__ = True
    found = sorted(map(str, problems))
    assert not found, "\n".join([advice, *found])
