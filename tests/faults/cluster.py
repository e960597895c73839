"""A PostgreSQL server of a test's own, to be stopped as if its machine had lost power."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgsvc_devkit.deadlines import patient
from tests.ports import free_ports

#: Who runs the server when we are root, whom PostgreSQL refuses.
SERVER_USER = "postgres"

#: Seconds that a start, recovery included, or a stop may take.
PATIENCE_S = patient(60)


def binaries() -> Path | None:
    """The folder of `initdb` and `pg_ctl`: the newest that Debian installed, or on the PATH."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdigit() else 0,
    )
    found = shutil.which("initdb") or (versions[-1] if versions else None)
    return None if found is None else Path(found).parent


@dataclass(frozen=True, slots=True)
class Cluster:
    """A server on a port of 127.0.0.1; commits wait for the disk."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Returns when it takes connections, after recovery if it needs one."""
        options = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''"
            " -c synchronous_commit=on -c max_connections=60"
        )
        self._control("start", "-l", self.folder / "server.log", "-o", options)

    def stop_at_once(self) -> None:
        """Immediate mode: every process ends in the middle of what it does, as in a power cut."""
        self._control("stop", "-m", "immediate")

    def _control(self, *arguments: str | Path) -> None:
        _run("pg_ctl", "-D", self.folder / "data", "-w", "-t", str(PATIENCE_S), *arguments)


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A new cluster, started; it is gone when the block ends."""
    # Not in pytest's folder: that is closed to everybody but its owner.
    folder = Path(tempfile.mkdtemp(prefix="msgsvc-cluster-"))
    if os.geteuid() == 0:
        shutil.chown(folder, SERVER_USER)
    made = Cluster(folder, free_ports())
    try:
        _run("initdb", "-D", folder / "data", "-U", "postgres", "-A", "trust", "-E", "UTF8")
        made.start()
        try:
            yield made
        finally:
            if (folder / "data" / "postmaster.pid").exists():
                made.stop_at_once()
    finally:
        shutil.rmtree(folder)


def missing() -> str | None:
    """What a cluster needs and this machine lacks."""
    if binaries() is None:
        return "needs PostgreSQL's initdb"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam(SERVER_USER)
        except KeyError:
            return f"needs a user {SERVER_USER}: PostgreSQL refuses root"
    return None


def _run(name: str, *arguments: str | Path) -> None:
    folder = binaries()
    assert folder is not None
    as_whom = ["runuser", "-u", SERVER_USER, "--"] if os.geteuid() == 0 else []
    # To a file, not a pipe: the server would inherit that, and keep it open.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [*as_whom, folder / name, *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
        output.seek(0)
        assert done.returncode == 0, output.read()
