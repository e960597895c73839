"""`msgsvc` in processes that are forked from one that has loaded it.

Loading it takes more than a second of a processor, and the suite starts hundreds of processes. All else
is as at any start: its environment, its folder, its files, and what it reads and does.
"""

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

from msgsvc_core.__main__ import main
from msgsvc_core.kernel import entry_points

#: Where `msgsvc` finds modules: this is first imported by the process that forks, which has no other path.
_PATH = tuple(filter(None, sys.path))

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.loaded"])


class ForkedProcess:
    """What `subprocess.Popen` is for a command of the service; `stdout` is text. `errors` is the file for its
    standard error, or a terminal, which then is its standard input and output too."""

    def __init__(
        self,
        arguments: Sequence[str | Path],
        environment: Mapping[str, str],
        errors: Path,
        folder: Path | None = None,
    ) -> None:
        reading, writing = multiprocessing.Pipe(duplex=False)
        given = [str(argument) for argument in arguments]
        folder = folder or Path.cwd()
        self._process = _CONTEXT.Process(
            target=_run, args=(given, dict(environment), errors, folder, writing), daemon=True
        )
        self._process.start()
        writing.close()
        self.stdout: TextIO = os.fdopen(os.dup(reading.fileno()), encoding="utf-8")
        reading.close()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("msgsvc", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(
    arguments: list[str], environment: dict[str, str], errors: Path, folder: Path, out: Connection
) -> None:
    """The command, in the forked process."""
    if errors.is_char_device():
        _use_terminal(errors)
    else:
        os.dup2(out.fileno(), 1)
        descriptor = os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(descriptor, 2)
        os.close(descriptor)
    out.close()
    os.chdir(folder)
    # As in a terminal: what a shell starts in the background, such as a run of all tests, ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    packages = [*filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:] = [*packages, *_PATH]
    importlib.invalidate_caches()
    if packages:
        # The process that forks has read the plugins of its own path only.
        entry_points.installed.cache_clear()
        entry_points._selection.cache_clear()
    sys.argv = ["msgsvc", *arguments]
    main()


def _use_terminal(path: Path) -> None:
    """Makes a terminal that of this process, where passwords are asked for too."""
    os.setsid()
    terminal = os.open(path, os.O_RDWR)
    for stream in range(3):
        os.dup2(terminal, stream)
    os.close(terminal)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - until the process ends
