"""`msgsvc worker`: what it refuses, and that its processes come and go together."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import TestRunner, redis_url
from tests.forking import ForkedProcess
from tests.ports import free_ports
from tests.process import until

#: Seconds that processes get to come or go.
PATIENCE_S = patient(120.0)


def test_a_worker_without_a_broker_is_refused_with_the_reason(run: Any, config: Path) -> None:
    result = run("worker")

    assert result.exit_code == 2
    assert "jobs.runner" in result.stderr


@pytest.fixture(params=["postgresql"])
async def worker_config(request: pytest.FixtureRequest, databases: Any, folder: Path) -> Any:
    """A configuration for workers, on an empty database of PostgreSQL."""
    if "postgresql" not in databases or not has("redis"):
        pytest.skip("needs PostgreSQL and Redis")
    database: PostgresDatabases = databases["postgresql"]
    runner = TestRunner("redis")
    path = folder / "msgsvc.toml"
    plain = 'secret_keys = ["kF3vQ9xLw2ZrT8nYp5HsB7mJd4GcA6eU"]\nplugins = []\nchannels = {}\n'
    path.write_text(plain, encoding="utf-8")
    url = await database.fresh(Service(load_settings(path, env={})).migrations)
    path.write_text(
        f'{plain}database_url = "{url}"\n[jobs]\nrunner = "dramatiq"\n'
        f'broker_url = "{redis_url()}"\n'
        f'broker_namespace = "{runner.job_settings["broker_namespace"]}"\n',
        encoding="utf-8",
    )
    yield path
    await database.give_back(url)
    runner.clean_up()


class Worker:
    """`msgsvc worker`, forked; the processes that it starts start as an operator's do."""

    def __init__(self, process: ForkedProcess, errors: Path) -> None:
        self.process = process
        self._errors = errors

    def pids(self, count: int) -> list[int]:
        """Of the next processes that work."""
        return [_pid_in(self.process.stdout.readline()) for _ in range(count)]

    def end(self, number: signal.Signals | None = None) -> tuple[int, str]:
        """Its exit code, after a signal or by itself, and what was written to standard error."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S), self._errors.read_text()


@contextmanager
def working(config: Path, *options: str) -> Iterator[Worker]:
    errors = config.with_name("errors.txt")
    arguments = ["worker", "--config", str(config), *options]
    process = ForkedProcess(arguments, os.environ, errors, config.parent)
    try:
        yield Worker(process, errors)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _pid_in(line: str) -> int:
    return int(line.partition("process ")[2].partition(";")[0])


def gone(pid: int) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists() or "(zombie)" in status_of(pid):
            return True
        time.sleep(0.02)
    return False


def status_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "(zombie)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(worker_config: Path, number: signal.Signals) -> None:
    with working(worker_config) as worker:
        [pid] = worker.pids(1)
        code, errors = worker.end(number)

    assert code == 0, errors
    assert "Traceback" not in errors
    assert gone(pid)


def test_every_process_loads_the_plugins_of_plugins_dir(worker_config: Path) -> None:
    folder = worker_config.with_name("own_plugins")
    folder.mkdir()
    (folder / "lark.py").write_text(
        "import os, pathlib\npathlib.Path(__file__).with_name(str(os.getpid())).touch()\n"
    )
    worker_config.write_text('plugins_dir = "own_plugins"\n' + worker_config.read_text("utf-8"))

    with working(worker_config, "--processes", "2") as worker:
        pids = worker.pids(2)
        code, errors = worker.end(signal.SIGTERM)

    assert code == 0, errors
    assert all((folder / str(pid)).exists() for pid in pids)


def test_a_process_that_is_killed_is_replaced_and_ctrl_c_ends_them_all(worker_config: Path) -> None:
    with working(worker_config, "--processes", "2") as worker:
        first, second = worker.pids(2)
        os.kill(first, signal.SIGKILL)
        [third] = worker.pids(1)
        code, errors = worker.end(signal.SIGINT)

    assert third != first
    assert code == 0, errors
    assert f"process {first} ended with -9" in errors
    assert "Traceback" not in errors
    assert gone(second)
    assert gone(third)


def test_processes_end_when_their_parent_is_killed(worker_config: Path) -> None:
    with working(worker_config, "--processes", "2") as worker:
        pids = worker.pids(2)
        worker.process.kill()
        worker.process.wait()

        assert all(gone(pid) for pid in pids)


def test_a_configuration_that_cannot_work_is_not_tried_again_and_again(
    worker_config: Path,
) -> None:
    worker_config.write_text(
        worker_config.read_text().replace("plugins = []", 'plugins = ["nonsense"]')
    )
    with working(worker_config, "--processes", "2") as worker:
        code, errors = worker.end()

    assert code == 2
    assert "nonsense" in errors


def test_each_of_several_processes_shows_its_figures_and_ends_with_the_worker(
    worker_config: Path,
) -> None:
    first = free_ports(2)
    with worker_config.open("a", encoding="utf-8") as file:
        file.write(f"[metrics]\nworker_port = {first}\n")
    with working(worker_config, "--processes", "2") as worker:
        pids = worker.pids(2)
        figures = [figures_at(first + place) for place in range(2)]
        code, errors = worker.end(signal.SIGTERM)

    assert all("\nmsgsvc_jobs{" in text for text in figures)
    assert code == 0, errors
    assert "Traceback" not in errors
    assert all(gone(pid) for pid in pids)


def figures_at(port: int) -> str:
    """What is shown there, once somebody listens."""

    def ask() -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
                return str(answer.read().decode())
        except URLError:
            return ""

    return until(ask, timeout_s=PATIENCE_S)
