"""`msgsvc serve` as a process: it says where it listens, ends when told, and fails in a line."""

import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import httpx2
import pytest

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.server import listener_of
from msgsvc_devkit.deadlines import patient
from tests.forking import ForkedProcess
from tests.ports import free_ports
from tests.process import Process, begin

#: Seconds that a process gets on a busy machine.
PATIENCE_S = patient(60)


class Serving:
    """A server that has printed that it listens."""

    def __init__(self, process: Process, errors: Path) -> None:
        self._process = process
        self._errors = errors
        assert process.stdout is not None
        self.line = process.stdout.readline()

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code after a signal, and what it has written to standard error."""
        self._process.send_signal(number)
        return self._process.wait(PATIENCE_S), self._errors.read_text()


@contextmanager
def _serving(folder: Path, *arguments: str, forks: bool = True) -> Iterator[Serving]:
    """A server of the configuration there. One that is not forked starts as an operator starts it."""
    errors = folder / "errors.txt"
    process = _begin(folder, errors, *arguments, forks=forks)
    try:
        yield Serving(process, errors)
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _begin(folder: Path, errors: Path, *arguments: str, forks: bool = True) -> Process:
    if forks:
        return ForkedProcess(["serve", *arguments], os.environ, errors, folder)
    # The working folder of these tests has the configuration.
    return begin([sys.executable, "-m", "msgsvc_core", "serve", *arguments], os.environ, errors)


@pytest.mark.parametrize(
    ("number", "forks"),
    [(signal.SIGTERM, True), (signal.SIGINT, False), (signal.SIGHUP, True)],
    ids=["term", "int", "hup"],
)
def test_it_says_where_it_listens_and_ends_well_when_told(
    config: Path, number: signal.Signals, forks: bool
) -> None:
    with _serving(config.parent, "--port", "0", forks=forks) as server:
        found = re.search(r"listens on (http://\S+),", server.line)
        assert found
        with urlopen(f"{found[1]}/healthz", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
            assert "server" not in answer.headers
        code, errors = server.end(number)

    assert code == 0
    assert "Traceback" not in errors
    assert re.search(r"info +stopping\n.*info +stopped\n$", errors, re.DOTALL)


def test_with_json_logs_every_line_is_an_object(config: Path) -> None:
    text = config.read_text("utf-8")
    config.write_text(f'{text}[jobs]\nrunner = "none"\n[log]\nformat = "json"\n', encoding="utf-8")
    errors = config.with_name("errors.txt")
    process = _begin(config.parent, errors, "--port", "0")
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not errors.exists() or '"listening"' not in errors.read_text():
            assert time.monotonic() < deadline, "it does not listen"
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_S)
        assert process.stdout is not None
        with process.stdout:
            printed = process.stdout.read()
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in errors.read_text().splitlines()]
    named = {line["event"]: line for line in lines}

    assert (code, printed) == (0, "")
    assert named["listening"]["url"].startswith("http://127.0.0.1:")
    assert "delivers nothing" in named["configuration_doubtful"]["detail"]
    assert [line["event"] for line in lines][-2:] == ["stopping", "stopped"]


def test_it_warns_of_what_doctor_would_warn_of(config: Path) -> None:
    text = config.read_text("utf-8")
    config.write_text(f'{text}[jobs]\nrunner = "none"\n', encoding="utf-8")
    with _serving(config.parent, "--port", "0") as server:
        _, errors = server.end()

    assert "delivers nothing" in errors


def test_it_says_that_it_is_in_quarantine(config: Path) -> None:
    with _serving(config.parent, "--port", "0", "--quarantine") as server:
        _, errors = server.end()

    assert "nothing is sent or received" in errors


def test_doctor_sees_a_quarantine_that_an_option_began(migrated: Path, run: Any) -> None:
    port = free_ports()
    text = migrated.read_text("utf-8")
    migrated.write_text(
        f'{text}base_url = "http://127.0.0.1:{port}"\n[server]\nport = {port}\n', "utf-8"
    )
    told = f"quarantine: the service that listens on port {port} was started in quarantine"
    alone = run("doctor").stdout
    with _serving(migrated.parent, "--quarantine") as server:
        beside = run("doctor").stdout
        server.end()
    with _serving(migrated.parent) as server:
        usual = run("doctor").stdout
        server.end()

    assert told in beside
    assert told not in alone + usual


def _failure(config: Path, *arguments: str) -> str:
    """What `serve` writes to standard error when it does not start; it exits with 2."""
    errors = config.with_name("errors.txt")
    process = _begin(config.parent, errors, *arguments)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(PATIENCE_S) == 2, errors.read_text()
    assert "Traceback" not in errors.read_text()
    return errors.read_text()


def test_a_taken_port_is_named(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        assert f"port {port}" in _failure(config, "--port", port)


def _ask(path: Path, **headers: str) -> int:
    """The status of `/metrics`, which machines that are named may read."""
    transport = httpx2.HTTPTransport(uds=str(path))
    with httpx2.Client(transport=transport, timeout=PATIENCE_S) as client:
        return client.get("http://msgsvc/metrics", headers=headers).status_code


def test_on_a_unix_socket_the_proxy_names_the_client(config: Path) -> None:
    path = config.with_name("msgsvc.sock")
    with _serving(config.parent, "--uds", str(path)) as server:
        answers = [_ask(path), _ask(path, **{"X-Forwarded-For": "203.0.113.7"})]
        mode = path.stat().st_mode & 0o777
        line = server.line
        server.end()

    assert f"listens on unix:{path}," in line
    assert answers == [200, 403]
    assert mode == 0o660
    assert not path.exists()


def test_the_socket_of_a_killed_process_is_replaced_and_that_of_a_live_one_is_not(
    config: Path,
) -> None:
    path = config.with_name("msgsvc.sock")
    text = config.read_text("utf-8")
    config.write_text(f'{text}[server]\nuds = "{path}"\n', encoding="utf-8")
    with _serving(config.parent) as killed:
        killed.end(signal.SIGKILL)
    left = path.is_socket()
    with _serving(config.parent):
        refusal = _failure(config)
        status = _ask(path)

    assert left
    assert "another process listens there" in refusal
    assert status == 200


def test_the_socket_of_a_process_that_is_starting_is_left_to_it(config: Path) -> None:
    path = config.with_name("msgsvc.sock")
    with listener_of(ServerSettings(uds=path)) as starting:
        refusal = _failure(config, "--uds", str(path))
        starting.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))

    assert "another process listens there, or is starting to" in refusal


@pytest.mark.parametrize("option", [("--port", "0"), ("--host", "::1"), ("--ephemeral",)])
def test_a_unix_socket_has_no_address(config: Path, option: tuple[str, ...]) -> None:
    assert "does not go with" in _failure(config, "--uds", "a.sock", *option)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("msgsvc.toml", "it is not a socket"),
        ("no/a.sock", "no file can be created in"),
        ("a" * 120, "path too long"),
    ],
)
def test_a_path_at_which_no_socket_can_be_is_named(config: Path, name: str, says: str) -> None:
    failure = _failure(config, "--uds", str(config.parent / name))

    assert "server.uds: can't listen on" in failure
    assert says in failure
    assert config.exists()


def test_a_database_that_does_not_answer_is_named(config: Path) -> None:
    text = config.read_text("utf-8")
    config.write_text(
        f'database_url = "postgresql://postgres@127.0.0.1:1/msgsvc"\n{text}', encoding="utf-8"
    )

    assert "the database can't be used" in _failure(config)


def test_a_missing_configuration_names_init(folder: Path) -> None:
    assert "`msgsvc init` writes one" in _failure(folder / "msgsvc.toml")


def test_a_missing_plugin_is_named(config: Path) -> None:
    text = config.read_text("utf-8").replace("plugins = []", 'plugins = ["nonsense"]')
    config.write_text(text, encoding="utf-8")

    assert "'nonsense' is not installed" in _failure(config)
