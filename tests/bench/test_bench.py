"""The bench itself, for the shortest time that it takes."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.bench import echo
from tests.bench.__main__ import main
from tests.bench.load import Request, put_load
from tests.process import start_server


def test_the_bench_runs_to_its_end_and_writes_its_findings(tmp_path: Path) -> None:
    out = tmp_path / "bench.json"

    main(["--seconds=1", "--rounds=1", "--warm-up=1", "--connections=4", f"--out={out}"])

    found = json.loads(out.read_text())
    assert "send, sqlite: per_s" in [finding["name"] for finding in found]
    for finding in found:
        assert finding["ratio"] == pytest.approx(finding["value"] / finding["reference"], rel=0.05)


def test_where_wrk_is_missing_a_generator_of_our_own_makes_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    bodies = tmp_path / "bodies.jsonl"
    bodies.write_text('{"number": 1}\n{"number": 2}\n')
    server = start_server([sys.executable, echo.__file__], tmp_path / "echo.log", os.environ)
    try:
        request = Request(f"{server.url}/v1/send", bodies, "key")
        good = put_load(request, connections=4, seconds=1, tick=lambda _: None)
        nowhere = Request(f"{server.url}/nowhere", bodies, "key")
        bad = put_load(nowhere, connections=4, seconds=1, tick=lambda _: None)
    finally:
        server.kill()

    assert good.requests > 100
    assert 0 < good.p50_ms <= good.p99_ms
    assert good.failed == 0
    assert bad.failed == bad.requests
