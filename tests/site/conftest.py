"""The built site, which the tests of this folder share."""

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from tests.site.tools import ROOT, site_python

#: Seconds for a build; it takes ten on two cores that nobody else uses.
BUILD_TIMEOUT_S = 180


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the pages of the checkout, built once for all processes that run the tests."""
    python = site_python()
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        built = shared / "site.built"
        if not built.exists():
            _build(python)
            built.touch()
    return ROOT / "build" / "site" / "next"


def _build(python: Path) -> None:
    done = subprocess.run(
        [python, "-m", "docs.site.build"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
