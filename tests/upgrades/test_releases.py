"""A release's processes run its code alone."""

from pathlib import Path

import pytest

from tests.upgrades.releases import CodeMissing, Release, releases

WHERE = """
import sys
from importlib.metadata import distributions, entry_points
import msgsvc_core.service
for point in entry_points(group="msgsvc.plugins"):
    point.load()
for name, module in list(sys.modules.items()):
    if name.startswith("msgsvc_"):
        print(module.__file__ or list(module.__path__)[0])
"""


def test_every_module_of_a_release_is_from_its_own_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        installed = releases()[-1].unpack(tmp_path / "release")
    except CodeMissing as error:
        pytest.skip(f"the release's code {error}")
    # Where a test is run from, today's code is what an interpreter finds first.
    monkeypatch.chdir(Path(__file__).parents[2])
    script = tmp_path / "where.py"
    script.write_text(WHERE)

    files = installed.deployment(tmp_path).run_script(script).split()

    assert len(files) > 300
    assert [file for file in files if not file.startswith(str(installed.code))] == []


def test_a_commit_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CodeMissing, match="shallow"):
        Release("1.0", "0" * 40).unpack(tmp_path / "release")
