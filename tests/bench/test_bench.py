"""The bench itself, for the shortest time that it takes."""

import json
from pathlib import Path

import pytest

from tests.bench.__main__ import main


@pytest.mark.parametrize("generator", ["installed", "own"])
def test_the_bench_runs_to_its_end_and_writes_its_findings(
    generator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if generator == "own":
        monkeypatch.setattr("shutil.which", lambda _name: None)
    out = tmp_path / "bench.json"

    main(["--seconds=1", "--rounds=1", "--warm-up=1", "--connections=4", f"--out={out}"])

    found = json.loads(out.read_text())
    assert "send, sqlite: per_s" in [finding["name"] for finding in found]
    for finding in found:
        assert finding["ratio"] == pytest.approx(finding["value"] / finding["reference"], rel=0.05)
