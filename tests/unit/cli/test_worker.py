"""`msgsvc worker`: what it refuses, and that its processes come and go together."""

import signal
import subprocess
import sys
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


@contextmanager
def working(config: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "msgsvc_core", "worker", "--config", str(config), *options]
    with subprocess.Popen(
        command, cwd=config.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def lines_of(process: subprocess.Popen[str], count: int) -> list[str]:
    assert process.stdout is not None
    return [process.stdout.readline() for _ in range(count)]


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


def pid_in(line: str) -> int:
    return int(line.partition("process ")[2].partition(";")[0])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("options", [(), ("--processes", "2")], ids=["one", "two"])
def test_a_signal_ends_it_cleanly(
    worker_config: Path, number: signal.Signals, options: tuple[str, ...]
) -> None:
    with working(worker_config, *options) as process:
        pids = [pid_in(line) for line in lines_of(process, 2 if options else 1)]
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert all(gone(pid) for pid in pids)


def test_a_process_that_is_killed_is_replaced(worker_config: Path) -> None:
    with working(worker_config, "--processes", "2") as process:
        first = pid_in(lines_of(process, 2)[0])
        subprocess.run(["kill", "-9", str(first)], check=True)
        third = pid_in(lines_of(process, 1)[0])
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert third != first
    assert process.returncode == 0, errors
    assert f"process {first} ended with -9" in errors


def test_processes_end_when_their_parent_is_killed(worker_config: Path) -> None:
    with working(worker_config, "--processes", "2") as process:
        pids = [pid_in(line) for line in lines_of(process, 2)]
        process.kill()
        process.wait()

        assert all(gone(pid) for pid in pids)


def test_a_configuration_that_cannot_work_is_not_tried_again_and_again(
    worker_config: Path,
) -> None:
    worker_config.write_text(
        worker_config.read_text().replace("plugins = []", 'plugins = ["nonsense"]')
    )
    with working(worker_config, "--processes", "2") as process:
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 2
    assert "nonsense" in errors


def test_each_process_shows_its_figures_on_the_next_port(worker_config: Path) -> None:
    first = free_ports(2)
    with worker_config.open("a", encoding="utf-8") as file:
        file.write(f"[metrics]\nworker_port = {first}\n")
    with working(worker_config, "--processes", "2") as worker:
        lines_of(worker, 2)
        figures = [figures_at(first + place) for place in range(2)]
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(PATIENCE_S)

    assert all("\nmsgsvc_jobs{" in text for text in figures)
    assert code == 0


def figures_at(port: int) -> str:
    """What is shown there, once somebody listens."""

    def ask() -> str:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
                return str(answer.read().decode())
        except URLError:
            return ""

    return until(ask, timeout_s=PATIENCE_S)
