"""Each part of the service is built by hand, from fakes, in a unit test."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: What composes a service and its plugins.
ROOTS = (
    ROOT / "msgsvc_core" / "service.py",
    *sorted(ROOT.glob("plugins/*/*/msgsvc_*/plugin.py")),
    *sorted(ROOT.glob("plugins/*/*/msgsvc_*/composition/*.py")),
)

#: Where the tests without a database are, of the core and of plugins.
UNIT_TESTS = ("tests/unit", "plugins/*/*/tests/unit")

#: Lines in which a unit test builds a part: eight collaborators, one a line, and the call around them.
MOST_LINES = 10

#: Declarations and values, which have no rules.
DECLARATIONS = {
    "ChannelContext",
    "ChannelKind",
    "Explainer",
    "LaneSpec",
    "MigrationSource",
    "Peers",
    "PlannedMessages",
    "PluginContext",
    "RetentionRule",
    "SealedColumn",
    "SettingsSection",
}

#: What is about the database, another server or another process itself: a fake would show nothing.
ABOUT_THE_DATABASE = {
    "msgsvc_core.Database": "transactions, pools and group commit (tests/contracts/test_database.py)",
    "msgsvc_core.DatabaseLimiter": "one statement that counts and decides (tests/contracts/test_limiter.py)",
    "msgsvc_core.DatabaseMetrics": "gauges of what the database holds",
    "msgsvc_core.JobAdmin": "statements on the job table (tests/contracts/test_interventions.py)",
    "msgsvc_core.LaneRunner": "leases and claims (tests/contracts/test_job_leases.py)",
    "msgsvc_core.LedgerPurge": "one statement that deletes",
    "msgsvc_core.MessageFiling": "SQLite's full rows, moved by statements",
    "msgsvc_core.RedisLimiter": "a script in Redis (tests/contracts/test_limiter.py)",
    "msgsvc_core.UpdateReceiver": "leases of reception between processes",
    "msgsvc_dashboard.CredentialStore": "statements alone (plugins/areas/dashboard/tests/accounts)",
}


def parts() -> set[str]:
    """The classes of ours that the composition roots build, as `package.Class`."""
    built = {name for path in ROOTS for name in _built(path)}
    return {name for name in built if name.partition(".")[2] not in DECLARATIONS}


@cache
def built_by_hand() -> dict[str, int]:
    """The classes of ours that unit tests build, and in how many lines."""
    lines: dict[str, int] = {}
    for folder in UNIT_TESTS:
        for path in ROOT.glob(f"{folder}/**/*.py"):
            for name, count in _built(path).items():
                lines[name] = min(count, lines.get(name, count))
    return lines


def _built(path: Path) -> dict[str, int]:
    """The classes of ours that a file builds, and the fewest lines that it takes it."""
    tree = ast.parse(path.read_text("utf-8"))
    package_of = {
        name.asname or name.name: f"{node.module.partition('.')[0]}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("msgsvc_")
        for name in node.names
    }
    lines: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = package_of.get(node.func.id, "") if node.func.id[:1].isupper() else ""
            if name:
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                lines[name] = min(count, lines.get(name, count))
    return lines


@pytest.mark.parametrize("name", sorted(parts() - ABOUT_THE_DATABASE.keys()))
def test_a_unit_test_builds_it_by_hand_in_a_few_lines(name: str) -> None:
    lines = built_by_hand()

    assert name in lines, f"build {name} from fakes in a test under {UNIT_TESTS[0]}"
    assert lines[name] <= MOST_LINES, f"{name} takes too much: it is two classes, or more"


def test_the_list_names_parts_that_there_are() -> None:
    assert ABOUT_THE_DATABASE.keys() <= parts()
