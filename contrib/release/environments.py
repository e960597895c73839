"""Environments that hold a release and nothing else, as an operator's do."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from contrib.release.distributions import ROOT


def new_environment(folder: Path) -> Path:
    """Makes an empty virtual environment, which has no pip either; returns its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin"


def install(
    programs: Path, requirements: Sequence[str], wheels: Path, *, is_compiled: bool = True
) -> None:
    """Installs from the folder of wheels, other people's packages from the configured index. What is not
    compiled is so when it is first imported.

    Requirements name their version: on an index, a stranger may have put a later one under our names.
    """
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    target = ["--python", str(programs / "python"), "install"]
    pins = ["--constraint", str(ROOT / "constraints.txt"), "--find-links", str(wheels)]
    how = [] if is_compiled else ["--no-compile"]
    subprocess.run([*pip, *target, *how, *pins, *requirements], check=True)
