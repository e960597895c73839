"""Which tests run on PostgreSQL too in the short form."""

import pytest

pytest_plugins = ("pytester",)

MODULE = """
import pytest

@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request):
    return request.param

@pytest.mark.parametrize("case", ["a-b", "c"])
def test_plain(backend, case): ...

@pytest.mark.both_databases
@pytest.mark.parametrize("case", ["a-b", "c"])
def test_marked(backend, case): ...

@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_without_a_twin(backend): ...

class Suite:
    def test_one(self, backend): ...
    def test_two(self, backend): ...

@pytest.mark.both_databases("test_two")
class TestNamed(Suite): ...

@pytest.mark.both_databases
class TestAll(Suite): ...
"""

MARKED = {
    "test_module.py::test_marked[postgresql-a-b]",
    "test_module.py::test_marked[postgresql-c]",
    "test_module.py::test_without_a_twin[postgresql]",
    "test_module.py::TestNamed::test_two[postgresql]",
    "test_module.py::TestAll::test_one[postgresql]",
    "test_module.py::TestAll::test_two[postgresql]",
}


def on_postgresql(pytester: pytest.Pytester, *arguments: str) -> set[str]:
    own = ("--collect-only", "-q", "-p", "msgsvc_devkit.both_databases")
    recorded = pytester.inline_run(*own, *arguments)
    [finished] = recorded.getcalls("pytest_collection_finish")
    return {item.nodeid for item in finished.session.items if "postgresql" in item.name}


@pytest.fixture(autouse=True)
def without_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_the_short_form_runs_what_is_marked_on_postgresql(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_module=MODULE)

    assert on_postgresql(pytester) == MARKED


def test_the_short_form_runs_all_of_a_listed_folder_on_postgresql(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nboth_databases_folders = locks")
    pytester.makepyfile(**{"test_module": MODULE, "locks/test_locks": MODULE})

    found = on_postgresql(pytester)

    assert {name for name in found if name.startswith("test_module")} == MARKED
    assert len(found - MARKED) == 9


def test_the_long_form_runs_everything_on_postgresql(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_module=MODULE)

    assert len(on_postgresql(pytester, "--all-databases")) == 9
