"""Plugins use what a stranger's plugin can use: the modules of the core that the reference names."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

from msgsvc_core.plugins.public import PUBLIC_MODULES, PUBLIC_PACKAGES, is_public
from tests.architecture.tree import ROOT, assert_none, files_in, name_of, plugin_packages, source_of

#: Imports of the core, those within functions and for type checkers too.
IMPORT = re.compile(
    r"(?m)^[ \t]*(?:import (msgsvc_core[\w.]*)|from (msgsvc_core[\w.]*) import (\([^)]*\)|.*))"
)
NAME = re.compile(r"(\w+)(?: as \w+)?")


def imported(source: str) -> Iterator[str]:
    """Modules of the core that a source imports."""
    for module, package, names in IMPORT.findall(source):
        if module:
            yield module
        else:
            # `from package import module` imports the module.
            for name in NAME.findall(re.sub("#.*", "", names)):
                inner = f"{package}.{name}"
                yield inner if is_module(inner) else package


@cache
def is_module(name: str) -> bool:
    folder = ROOT.joinpath(*name.split("."))
    return folder.with_suffix(".py").is_file() or (folder / "__init__.py").is_file()


def test_imports_are_found() -> None:
    source = """
import msgsvc_core.db.tx
from msgsvc_core.jobs import (
    # A comment.
    lanes as l,
    JobSpec,  # noqa
)

def later():
    from msgsvc_core.kernel.clock import Clock
"""

    assert list(imported(source)) == [
        "msgsvc_core.db.tx",
        "msgsvc_core.jobs.lanes",
        "msgsvc_core.jobs",
        "msgsvc_core.kernel.clock",
    ]


def test_plugins_import_public_modules_alone() -> None:
    # The plugins, and those that the guides show.
    packages = [*plugin_packages(), *ROOT.glob("examples/own_*")]
    inside = {
        f"{name_of(path)}: {module}"
        for package in packages
        for path in files_in(package, ".py")
        if "tests" not in path.parts
        for module in imported(source_of(path))
        if module.startswith("msgsvc_core.") and not is_public(module)
    }

    assert_none(inside)


def test_public_modules_are_there_and_have_no_sql() -> None:
    public = [*PUBLIC_MODULES, *PUBLIC_PACKAGES]

    assert_none(module for module in public if find_spec(module) is None)
    assert_none(module for module in public if module.endswith("store"))


def test_the_list_of_public_modules_is_in_order() -> None:
    assert list(PUBLIC_MODULES) == sorted(set(PUBLIC_MODULES))
    assert_none(module for module in PUBLIC_MODULES if module.startswith(PUBLIC_PACKAGES))
