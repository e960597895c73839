"""The TypeScript client, built where tests and scenarios find it."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from msgsvc_devkit.deadlines import patient
from tests.clients.tools import missing

PACKAGE = Path(__file__).parents[3] / "contrib" / "clients" / "typescript"

#: Seconds for one command of npm or Node on a busy machine.
PATIENCE_S = patient(180)


def program(name: str) -> str:
    """The path of `node` or `npm`."""
    found = shutil.which(name)
    if found is None:
        missing(name)
    return found


def run(*command: str | Path, cwd: Path = PACKAGE, **environment: str) -> str:
    """The output of a command, which has to succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, "npm_config_offline": "true", "npm_config_update_notifier": "false"}
        | {"npm_config_audit": "false", "npm_config_fund": "false"}
        | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def compiler() -> Path:
    """The package's `tsc`."""
    found = PACKAGE / "node_modules" / "typescript" / "bin" / "tsc"
    if not found.exists():
        missing("npm's typescript")
    return found


@cache
def built_client() -> Path:
    """The folder of the built client, compiled if its sources have changed. Safe in several processes."""
    node, tsc = program("node"), compiler()
    sources = [PACKAGE / "package.json", PACKAGE / "tsconfig.json", *PACKAGE.glob("src/**/*.ts")]
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    folder = PACKAGE / "dist"
    folder.mkdir(exist_ok=True)
    stamp = PACKAGE / "node_modules" / ".built"
    with (PACKAGE / "node_modules" / ".building").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        current = stamp.exists() and stamp.read_text("utf-8") == digest.hexdigest()
        if not current or not (folder / "index.js").exists():
            shutil.rmtree(folder)
            run(node, tsc, "--project", "tsconfig.json")
            stamp.write_text(digest.hexdigest(), "utf-8")
    return folder
