"""Runs the tests that a change can affect, by distributions and the layers of the core.

    python -m tests.changed --base main -- python -m pytest -n 3

A test is affected if its module, one that it imports, or a conftest beside it has changed, or names a
distribution that has. The import contracts make that safe: plugins don't import one another, so a change of
one reaches only what loads it. A change of the core, below its entry points, or of the developer kit reaches
everything.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

#: Where tests are, as in `testpaths` of pyproject.toml.
ROOTS = ("tests", "plugins", "examples")

#: Checks of the tree's form, which everything can break, and which are quick.
ALWAYS = ("tests/architecture",)

#: What all tests build on.
EVERYTHING = re.compile(
    r"msgsvc_core/(?!cli/|server/)|contrib/devkit/|pyproject\.toml|constraints\.txt"
)

#: A file of a distribution, and what names it: the package of a plugin, of the clients, or an entry point.
_PLUGIN = re.compile(r"plugins/\w+/(\w+)/")
_ENTRY_POINT = re.compile(r"msgsvc_core/(cli|server)/")
_CLIENT = re.compile(r"contrib/clients/(\w+)/")


class Suite:
    """The modules of the tests, and what each of them reaches."""

    def __init__(self, texts: dict[PurePosixPath, str]) -> None:
        self._texts = texts

    @cached_property
    def reached(self) -> dict[PurePosixPath, set[PurePosixPath]]:
        """By each test: the modules that it imports, those that they import, and its conftest files."""
        direct = {path: set(self._imports(path)) for path in self._texts}
        return {
            path: _closure(path, direct) | set(self._conftests(path))
            for path in self._texts
            if _is_test(path)
        }

    def affected(self, changed: Iterable[str]) -> list[PurePosixPath]:
        """The tests that a change of these files can affect, in order."""
        files = [PurePosixPath(each) for each in changed]
        if any(EVERYTHING.match(str(each)) for each in files):
            return sorted(self.reached)
        names = [name for each in files if (name := _name_of(str(each)))]
        hit = set(files) & self._texts.keys()
        if names:
            found = re.compile("|".join(names))
            hit |= {path for path, text in self._texts.items() if found.search(text)}
        always = {path for path in self.reached if str(path).startswith(ALWAYS)}
        own = {path for path in self.reached if any(_is_below(path, each) for each in files)}
        return sorted(always | own | {path for path, all_ in self.reached.items() if all_ & hit})

    def _conftests(self, path: PurePosixPath) -> Iterator[PurePosixPath]:
        # Not what they import: a folder's fixtures are for several plugins, a test's for few.
        for folder in path.parents:
            if (conftest := folder / "conftest.py") in self._texts:
                yield conftest

    def _imports(self, path: PurePosixPath) -> Iterator[PurePosixPath]:
        for module in _imported_modules(path, ast.parse(self._texts[path])):
            for candidate in (module.with_suffix(".py"), module / "__init__.py"):
                if candidate in self._texts:
                    yield candidate


def _imported_modules(path: PurePosixPath, tree: ast.AST) -> Iterator[PurePosixPath]:
    """Without suffix. Of `from a import b` both `a` and `a/b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (PurePosixPath(*alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = (node.module or "").split(".") if node.module else []
            base = path.parents[node.level - 1] if node.level else PurePosixPath()
            module = base.joinpath(*parts)
            yield module
            yield from (module / alias.name for alias in node.names)


def _closure(
    start: PurePosixPath, direct: dict[PurePosixPath, set[PurePosixPath]]
) -> set[PurePosixPath]:
    found, waiting = {start}, [start]
    while waiting:
        new = direct[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _is_test(path: PurePosixPath) -> bool:
    return path.name.startswith("test_")


def _is_below(test: PurePosixPath, changed: PurePosixPath) -> bool:
    """Whether a test is in the distribution of the changed file, beside its package."""
    found = _PLUGIN.match(str(changed))
    return found is not None and str(test).startswith(found.group(0))


def _name_of(changed: str) -> str | None:
    """An expression for what names the distribution of a file; None if nothing loads it."""
    if found := _PLUGIN.match(changed):
        return None if "/tests/" in changed else rf"\bmsgsvc_{found[1]}\b|[\"']{found[1]}[\"']"
    if found := _ENTRY_POINT.match(changed):
        return rf"msgsvc_core\.{found[1]}\b|tests\.process\b"
    if found := _CLIENT.match(changed):
        return rf"\bclients[./]{found[1]}\b|\bmsgsvc_client\b"
    folder = PurePosixPath(changed).parts[0]
    return re.escape(PurePosixPath(changed).name) if folder in {"docs", "contrib"} else None


def read_suite(root: Path) -> Suite:
    """The modules below the roots of a checkout."""
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", *ROOTS)
    paths = [PurePosixPath(line) for line in listed if line.endswith(".py")]
    return Suite(
        {
            path: (root / path).read_text("utf-8")
            for path in paths
            if (path.parts[0] == "tests" or "tests" in path.parts) and (root / path).exists()
        }
    )


def changed_since(base: str) -> list[str]:
    """Files that differ from where this branch left `base`, uncommitted ones included."""
    [since] = _git("merge-base", base, "HEAD")
    new = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*_git("diff", "--name-only", since), *new})


def default_base() -> str:
    """The branch that this one follows; `main` beside it; else the last commit."""
    for name in ("@{upstream}", "main"):
        found = subprocess.run(
            ("git", "rev-parse", "--verify", "--quiet", name), capture_output=True, check=False
        )
        if found.returncode == 0:
            return name
    return "HEAD"


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(("git", *arguments), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="", help="a branch or commit")
    parser.add_argument("command", nargs="+", help="runs pytest, and gets the files as arguments")
    given = parser.parse_args(arguments)
    base = given.base or default_base()
    suite = read_suite(Path.cwd())
    changed = changed_since(base)
    affected = suite.affected(changed)
    sys.stdout.write(
        f"{len(changed)} files differ from {base}; they can affect"
        f" {len(affected)} of {len(suite.reached)} files of tests\n"
    )
    sys.stdout.flush()
    if not changed:
        return 0
    whole = len(affected) == len(suite.reached)
    files = [] if whole else ["--slow=no", *map(str, affected)]
    done = subprocess.run([*given.command, *files], check=False)
    # 5: the files had slow tests only.
    return 0 if done.returncode == 5 else done.returncode


if __name__ == "__main__":
    sys.exit(main())
