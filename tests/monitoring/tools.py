"""Debian's Prometheus and its `promtool`, and the files that operators give them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from msgsvc_devkit.deadlines import patient

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "contrib" / "deploy"
ALERTS = DEPLOY / "alerts.yml"
CONFIGURATION = DEPLOY / "prometheus.yml"
GUIDE = ROOT / "docs" / "guides" / "monitoring.md"

#: Seconds that promtool may take; it takes a tenth of one.
TIMEOUT_S = patient(60)


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`; a test is skipped where it is missing, unless
    `MSGSVC_TEST_REQUIRE` has ended the run before."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is missing: apt-get install prometheus")
    return path


def promtool(*arguments: str | Path) -> str:
    """What promtool prints. Raises `AssertionError` with it if promtool finds a fault."""
    done = subprocess.run(
        [program("promtool"), *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def alerts() -> dict[str, Any]:
    """The whole of `alerts.yml`, new each time."""
    loaded: dict[str, Any] = yaml.safe_load(ALERTS.read_text("utf-8"))
    return loaded


def rules(groups: dict[str, Any]) -> list[dict[str, Any]]:
    """The alerts of all groups."""
    return [rule for group in groups["groups"] for rule in group["rules"]]
