"""Parts name what they use: nothing takes the whole service but what builds it, and what is outside it."""

import ast
from dataclasses import fields
from pathlib import Path

from msgsvc_core.plugins.context import PluginContext

ROOT = Path(__file__).parents[2]

#: The composition root and its importers in the core: the entry points.
OUTSIDE = {"service.py", "cli", "server"}

#: Fields of a plugin's context: with more, nobody sees what a plugin is given.
MOST_FIELDS = 26


def inside() -> list[Path]:
    """The modules of the core's parts and of the plugins."""
    core = ROOT / "msgsvc_core"
    parts = [path for path in core.rglob("*.py") if path.relative_to(core).parts[0] not in OUTSIDE]
    return sorted([*parts, *ROOT.glob("plugins/*/*/msgsvc_*/**/*.py")])


def test_no_function_takes_the_service() -> None:
    takers = []
    for path in inside():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                kinds = [ast.unparse(each.annotation) for each in arguments if each.annotation]
                if {"Service", "'Service'"} & set(kinds):
                    takers.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")

    assert takers == []


def test_what_handlers_are_given_has_no_service() -> None:
    askers = [
        str(path.relative_to(ROOT))
        for path in inside()
        if any(f"{name}.service" in path.read_text("utf-8") for name in ("ctx", "page", "context"))
    ]

    assert askers == []


def test_a_plugin_is_given_a_bounded_choice_of_the_core() -> None:
    assert len(fields(PluginContext)) <= MOST_FIELDS
