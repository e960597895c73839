"""Programs of others that the tests run, as `make client-tools` installs them."""

import os
import subprocess
from pathlib import Path
from typing import NoReturn

from msgsvc_devkit import machine

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".venv" / "client-tools"


def node_tool(name: str) -> Path:
    """A program of npm; the test is skipped, or fails if required, where it is missing."""
    return _found(HERE / "node_modules" / ".bin" / name)


def python_tool(environment: str, name: str) -> Path:
    """A program of one of the Python environments, likewise."""
    return _found(ENVIRONMENTS / environment / "bin" / name)


def missing(what: str) -> NoReturn:
    """Skips the test, or fails it where everything has to be there."""
    reason = f"{what} is missing: make client-tools"
    machine.missing("client-tools", reason)


def _found(program: Path) -> Path:
    if not program.exists():
        missing(program.name)
    return program


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What the program printed; the test fails with it if the program does."""
    environment = {
        **os.environ,
        "REDOCLY_TELEMETRY": "off",
        "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
