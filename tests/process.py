"""`msgsvc` as an operator runs it: commands, and a server in a process of its own."""

import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from msgsvc_core.db.database import sqlite_path
from msgsvc_devkit.deadlines import patient
from tests.forking import ForkedProcess

T = TypeVar("T")

Process = subprocess.Popen[str] | ForkedProcess

#: Seconds that a server gets to end: more than the grace of its jobs.
STOP_S = patient(45.0)

#: Seconds that anything else gets to happen on a busy machine.
PATIENCE_S = patient(60.0)

#: The `msgsvc` script that stands beside the interpreter of the tests.
MSGSVC = Path(sys.executable).with_name("msgsvc")

SECRET_KEY = "a-key-for-tests-only-a-key-for-tests-only"

_LISTENS = re.compile(r"listens on (https?://\S+?|unix:\S+?),")
_WORKS = re.compile(r"works in process (\d+)")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A folder with a configuration. `packages` are folders with plugins, as on `PYTHONPATH`.

    Its processes are forked from one that has loaded the service, unless `forks` is false: then each starts
    as an operator starts it, for who measures or looks at that.
    """

    folder: Path
    packages: Sequence[Path] = ()
    forks: bool = True

    @property
    def config(self) -> Path:
        return self.folder / "msgsvc.toml"

    def configure(
        self, toml: str, database_url: str | None = None, port: int = 0, server: str = ""
    ) -> None:
        """Writes the configuration: any free port and, by default, a file as database, and `toml`; `server`
        are further lines of its section of that name."""
        database_url = database_url or f"sqlite:///{self.folder / 'msgsvc.db'}"
        self.config.write_text(
            f'secret_keys = ["{SECRET_KEY}"]\n'
            f'database_url = "{database_url}"\n'
            f"{toml}\n[server]\nport = {port}\n{server}\n",
            encoding="utf-8",
        )

    def run(self, *arguments: str) -> str:
        """What a command prints. Raises `AssertionError` with its complaint when it fails."""
        if arguments[0] in {"account", "project"} and not self._has_database():
            self.run("migrate")
        errors = self.folder / f"{uuid4().hex}.err"
        process = self._begin([*arguments, "--config", self.config], errors)
        assert process.stdout is not None
        with process.stdout:
            printed = process.stdout.read()
        assert process.wait(PATIENCE_S) == 0, errors.read_text()
        return printed

    def _has_database(self) -> bool:
        """Only SQLite's could be missing: commands don't create it."""
        url = tomllib.loads(self.config.read_text("utf-8"))["database_url"]
        return not url.startswith("sqlite:") or sqlite_path(url).exists()

    def create_key(self) -> str:
        """The secret of an API key for a new project."""
        project: dict[str, Any] = json.loads(self.run("project", "create", "Shop", "--json"))
        key: dict[str, Any] = json.loads(self.run("key", "create", project["project_id"], "--json"))
        return str(key["key"])

    def start(self) -> "Server":
        """`msgsvc serve`, ready for requests. Its log is `serve.log` in the folder."""
        log = self.folder / "serve.log"
        return _once_ready(self._begin(["serve", "--config", self.config], log), log, _LISTENS)

    @contextmanager
    def serving(self) -> Iterator["Server"]:
        """A server that has ended, one way or another, when the block has."""
        server = self.start()
        try:
            yield server
        finally:
            server.end()

    def start_worker(self, *options: str) -> "Server":
        """`msgsvc worker`, at work; its `url` is its process's number. Logs to `worker.log`."""
        log = self.folder / "worker.log"
        command: list[str | Path] = ["worker", "--config", self.config, *options]
        return _once_ready(self._begin(command, log), log, _WORKS)

    @contextmanager
    def working(self, *options: str) -> Iterator["Server"]:
        """A worker that has ended, one way or another, when the block has."""
        worker = self.start_worker(*options)
        try:
            yield worker
        finally:
            worker.end()

    def _begin(self, arguments: Sequence[str | Path], errors: Path) -> Process:
        if self.forks:
            return ForkedProcess(arguments, self._environment(), errors)
        return begin([MSGSVC, *arguments], self._environment(), errors)

    def _environment(self) -> dict[str, str]:
        # No MSGSVC_* of the tester's own reaches the process.
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MSGSVC_")}
        # An operator's modules have been compiled when they were installed.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**kept, "PYTHONPATH": os.pathsep.join(map(str, self.packages))}


@dataclass(frozen=True, slots=True)
class Server:
    """A running `msgsvc serve`."""

    process: Process
    url: str

    def kill(self) -> None:
        """kill -9: nothing of it gets a chance to tidy up."""
        self.process.kill()
        self._wait()

    def end(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        return self._wait()

    def _wait(self) -> int:
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            if self.process.stdout:
                self.process.stdout.close()
        return code


def start_server(
    command: Sequence[str | Path], log: Path, environment: Mapping[str, str]
) -> Server:
    """A server that prints `... listens on <address>, ...` once it takes requests."""
    return _once_ready(begin(command, environment, log), log, _LISTENS)


def begin(
    command: Sequence[str | Path], environment: Mapping[str, str], errors: Path
) -> subprocess.Popen[str]:
    """A process with its standard output to read, and its errors appended to a file."""
    with errors.open("a") as file:
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=file, text=True
        )


def _once_ready(process: Process, log: Path, ready: re.Pattern[str]) -> Server:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := ready.search(line):
                return Server(process, found[1])
        process.wait(STOP_S)
    except BaseException:
        # Nobody else knows of it yet.
        process.kill()
        process.wait()
        process.stdout.close()
        raise
    process.stdout.close()
    raise AssertionError(log.read_text())


def until(found: Callable[[], T], *, timeout_s: float = PATIENCE_S) -> T:
    """What `found` answers once that is true."""
    deadline = time.monotonic() + timeout_s
    while not (answer := found()):
        assert time.monotonic() < deadline, f"not within {timeout_s} s; last: {answer!r}"
        time.sleep(0.02)
    return answer


def install_module(folder: Path, module: Path) -> Path:
    """Makes a module a plugin of its own name, as pip would: found by its entry point in `folder`."""
    name = module.stem
    info = folder / f"{name}-0.dist-info"
    info.mkdir(parents=True)
    (folder / module.name).write_bytes(module.read_bytes())
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[msgsvc.plugins]\n{name} = {name}\n")
    return folder
