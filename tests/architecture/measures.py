"""How much of the code repeats itself, in figures, beside the goals that were set for them.

    python -m tests.architecture.measures

A figure is a count of what the syntax trees hold, so a name that does not follow the code's habits is not
counted. The two figures of time come from `python -m msgsvc_devkit.costs` and `make test`.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.architecture.tree import ROOT

SERVICE = ROOT / "msgsvc_core/service.py"
DASHBOARD = ROOT / "plugins/areas/dashboard/msgsvc_dashboard"

#: Code that decides the next step of a route.
ROUTE_STEPS = (
    "msgsvc_core/routing/choosing.py",
    "msgsvc_core/routing/progress.py",
    "msgsvc_core/messages/route_moves.py",
    "msgsvc_core/messages/route_progress.py",
    "msgsvc_core/mailings/route_moves.py",
    "msgsvc_core/mailings/route_watch.py",
    "plugins/areas/gateway/msgsvc_gateway/sending.py",
    "plugins/areas/otp/msgsvc_otp/by_route.py",
)

LONG = 60


def product(plugins: str = "*") -> Iterator[Path]:
    """The modules of the core and of the plugins, or of one kind of plugins, without migrations and tests."""
    for folder in (ROOT / "msgsvc_core", *sorted((ROOT / "plugins").glob(f"{plugins}/*/msgsvc_*"))):
        for path in sorted(folder.rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def classes(plugins: str = "*") -> Iterator[ast.ClassDef]:
    for path in product(plugins):
        yield from (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef))


def fields_of(declared: ast.ClassDef) -> set[str]:
    return {
        node.target.id
        for node in declared.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def service_lines() -> int:
    return len(SERVICE.read_text("utf-8").splitlines())


def service_objects() -> int:
    """Objects that the constructor of `Service` builds: calls of names with a capital letter."""
    [service] = [
        node
        for node in tree_of(SERVICE).body
        if isinstance(node, ast.ClassDef) and node.name == "Service"
    ]
    [init] = [
        node
        for node in service.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id[:1].isupper()
        for node in ast.walk(init)
    )


def service_imports() -> int:
    return sum(
        len(node.names)
        for node in ast.walk(tree_of(SERVICE))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def long_functions() -> int:
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1 > LONG
        for path in product()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def content_classes() -> int:
    """Classes that declare what a message holds: a text with buttons, or with a file."""
    return sum(
        "text" in fields and bool(fields & {"buttons", "media"})
        for fields in map(fields_of, classes())
    )


def button_classes() -> int:
    """Classes of the core and the areas that declare what a button does; platforms have their own forms."""
    return sum({"text", "url", "data"} <= fields_of(declared) for declared in classes("areas"))


def media_classes() -> int:
    """Classes of the core and the areas that declare the file of a message; a stored file has an id."""
    return sum(
        {"type", "url", "filename"} <= (fields := fields_of(declared)) and "file_id" not in fields
        for declared in classes("areas")
    )


def route_lines() -> int:
    found = (ROOT / name for name in ROUTE_STEPS)
    return sum(len(path.read_text("utf-8").splitlines()) for path in found if path.exists())


def foreign_titles() -> int:
    """Titles of changes and events that the dashboard holds for other packages."""
    own = {"account", "team"}
    return sum(
        isinstance(key, ast.Constant) and str(key.value).partition(".")[0] not in own
        for path in (DASHBOARD / "team/actions.py", DASHBOARD / "people/labels.py")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and "." in str(key.value)
    )


def decision_pages() -> int:
    return len(list((ROOT / "docs/decisions").glob("[0-9]*.md")))


#: What is measured, its goal, and how.
MEASURES: tuple[tuple[str, int, Callable[[], int]], ...] = (
    ("lines of service.py", 450, service_lines),
    ("objects that the constructor of Service builds", 40, service_objects),
    ("names that service.py imports", 60, service_imports),
    (f"functions of more than {LONG} lines", 3, long_functions),
    ("classes that declare the content of a message", 3, content_classes),
    ("classes that declare a button", 2, button_classes),
    ("classes that declare a file of a message", 2, media_classes),
    ("lines that decide the next step of a route", 800, route_lines),
    ("titles of other packages in the dashboard", 0, foreign_titles),
    ("decision pages", 45, decision_pages),
)


def report() -> Iterator[str]:
    yield f"{'measure':50} {'now':>6} {'goal':>6}"
    for title, goal, measure in MEASURES:
        now = measure()
        yield f"{title:50} {now:6} {goal:6}{'' if now <= goal else '  not met'}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
