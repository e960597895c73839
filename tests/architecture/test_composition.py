"""Parts name what they use: nothing takes the whole service but what builds it, and what is outside it."""

import ast
import re
from dataclasses import fields
from pathlib import Path

from msgsvc_core.plugins.context import PluginContext
from tests.architecture.tree import (
    CORE,
    assert_none,
    files_in,
    name_of,
    plugin_packages,
    source_of,
    tree_of,
)

#: The composition root and its importers in the core: the entry points.
OUTSIDE = {"service.py", "cli", "server"}

#: Fields of a plugin's context: with more, nobody sees what a plugin is given.
MOST_FIELDS = 26

#: An annotation of an argument, or what looks like one.
TAKES_SERVICE = re.compile(r":\s*'?\"?Service\b")

ASKS_FOR_SERVICE = re.compile(r"(?:ctx|page|context)\.service")


def inside() -> list[Path]:
    """The modules of the core's parts and of the plugins."""
    of_core = files_in(CORE, ".py")
    parts = [path for path in of_core if path.relative_to(CORE).parts[0] not in OUTSIDE]
    return [*parts, *(path for package in plugin_packages() for path in files_in(package, ".py"))]


def test_no_function_takes_the_service() -> None:
    takers = []
    for path in inside():
        if not TAKES_SERVICE.search(source_of(path)):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                kinds = [ast.unparse(each.annotation) for each in arguments if each.annotation]
                if {"Service", "'Service'"} & set(kinds):
                    takers.append(f"{name_of(path)}:{node.lineno} {node.name}")

    assert_none(takers)


def test_what_handlers_are_given_has_no_service() -> None:
    askers = [name_of(path) for path in inside() if ASKS_FOR_SERVICE.search(source_of(path))]

    assert_none(askers)


def test_a_plugin_is_given_a_bounded_choice_of_the_core() -> None:
    assert len(fields(PluginContext)) <= MOST_FIELDS
