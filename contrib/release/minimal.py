"""Installs the smallest useful service from `dist/` and measures it: core, sandbox, Telegram, sign-in.

make dist-check
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions as installed_in
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from contrib.release.distributions import ROOT, released_version
from contrib.release.environments import install, new_environment

WANTED = ("msgsvc-core", "msgsvc-sandbox", "msgsvc-telegram", "msgsvc-auth")

#: What an operator with a small machine would like; asked for, not promised.
MOST_PACKAGES, MOST_IDLE_MIB = 30, 60

#: Seconds after which a process that nobody asks anything is idle.
SETTLED_S = 5.0

#: Largest parts to name.
NAMED = 8

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Run:
    """One start: seconds until it listens, and MiB of memory when idle.

    `own_mib` is the proportional set size: shared pages count for each process that shares them.
    """

    start_s: float
    resident_mib: float
    own_mib: float


def bytes_of(folder: Path) -> int:
    """Bytes on disk, in whole blocks as the file system gives them."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def largest(packages: Path) -> list[tuple[str, int]]:
    """The largest distributions, with their bytes."""
    found = []
    for each in installed_in(path=[str(packages)]):
        files = [Path(str(file.locate())) for file in each.files or ()]
        found.append(
            (each.name, sum(file.lstat().st_blocks * 512 for file in files if file.exists()))
        )
    return sorted(found, key=lambda one: -one[1])[:NAMED]


@contextmanager
def serving(programs: Path, folder: Path) -> Iterator[tuple[int, float]]:
    """The process, and the seconds until it listened."""
    command = [str(programs / "msgsvc"), "serve", "--port", "0"]
    began = time.monotonic()
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if " listens on " in line:
                    break
            else:
                sys.exit((folder / "serve.log").read_text())
            yield process.pid, time.monotonic() - began
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def run_once(programs: Path, folder: Path) -> Run:
    with serving(programs, folder) as (pid, start_s):
        time.sleep(SETTLED_S)
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    kib = {name: int(value) for name, value in re.findall(r"(?m)^(\w+):\s+(\d+) kB$", rollup)}
    return Run(start_s, kib["Rss"] / 1024, kib["Pss"] / 1024)


def main() -> None:
    console = Console()
    wheels = ROOT / "dist"
    if not list(wheels.glob("msgsvc_core-*.whl")):
        sys.exit("no release in dist/: make dist")
    with TemporaryDirectory(prefix="msgsvc-minimal-") as temporary:
        folder = Path(temporary)
        began = time.monotonic()
        with console.status("installing"):
            programs = new_environment(folder / "environment")
            install(programs, [f"{name}=={released_version()}" for name in WANTED], wheels)
        install_s = time.monotonic() - began
        (packages,) = (folder / "environment").glob("lib/python3.*/site-packages")
        names = [each.name for each in installed_in(path=[str(packages)])]
        with console.status("starting it three times"):
            subprocess.run(
                [programs / "msgsvc", "init", "--yes", "--all"],
                cwd=folder,
                check=True,
                stdout=subprocess.DEVNULL,
                env={**os.environ, "MSGSVC_CONFIG": "msgsvc.toml"},
            )
            runs = [run_once(programs, folder) for _ in range(3)]
        first, again = runs[0], min(runs[1:], key=lambda run: run.start_s)
        ours = sum(name.startswith("msgsvc") for name in names)
        table = Table(title="core, sandbox, telegram, auth on SQLite", title_justify="left")
        for title in ("", "today", "asked"):
            table.add_column(title, justify="left" if not title else "right")
        table.add_row("packages", f"{len(names)}, of which {ours} are ours", f"{MOST_PACKAGES}")
        table.add_row("MiB on disk", f"{bytes_of(packages) / MIB:.0f}", "")
        table.add_row("MiB idle, resident", f"{again.resident_mib:.0f}", f"{MOST_IDLE_MIB}")
        table.add_row("MiB idle, proportional", f"{again.own_mib:.0f}", "")
        table.add_row("seconds to install", f"{install_s:.0f}", "")
        table.add_row("seconds to start", f"{again.start_s:.1f}", "")
        table.add_row("the first start, with migrations", f"{first.start_s:.1f} s", "")
        table.add_row("MiB idle after it, resident", f"{first.resident_mib:.0f}", "")
        console.print(table)
        parts = ", ".join(f"{name} {size / MIB:.0f}" for name, size in largest(packages))
        console.print(f"the largest, in MiB on disk: {parts}")


if __name__ == "__main__":
    main()
