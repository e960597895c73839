"""The built site, which the tests of this folder share."""

import subprocess
from pathlib import Path

import pytest

from msgsvc_devkit.deadlines import patient
from tests.site.tools import ROOT, first_of_all, site_python

#: Seconds for a build; it takes ten on two cores that nobody else uses.
BUILD_TIMEOUT_S = patient(180)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the pages of the checkout, built once for all processes that run the tests."""
    python = site_python()
    with first_of_all(tmp_path_factory, "site") as folder:
        if folder:
            _build(python)
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
