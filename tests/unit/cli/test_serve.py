"""`msgsvc serve` as a process: it says where it listens, ends when told, and fails in a line."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from msgsvc_devkit.deadlines import patient
from tests.ports import free_ports

#: Seconds that a process gets on a busy machine.
PATIENCE_S = patient(60)


def _serve(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "msgsvc_core", "serve", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_ends_well_when_told(
    config: Path, number: signal.Signals
) -> None:
    with _serve(config.parent, "--port", "0") as process:
        assert process.stdout is not None
        found = re.search(r"listens on (http://\S+),", process.stdout.readline())
        assert found
        with urlopen(f"{found[1]}/healthz", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
            assert "server" not in answer.headers
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0
    assert "Traceback" not in errors


def test_it_warns_of_what_doctor_would_warn_of(config: Path) -> None:
    text = config.read_text("utf-8")
    config.write_text(f'{text}[jobs]\nrunner = "none"\n', encoding="utf-8")
    with _serve(config.parent, "--port", "0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert "delivers nothing" in errors


def test_it_says_that_it_is_in_quarantine(config: Path) -> None:
    with _serve(config.parent, "--port", "0", "--quarantine") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)

    assert "nothing is sent or received" in errors


def test_doctor_sees_a_quarantine_that_an_option_began(config: Path, run: Any) -> None:
    port = free_ports()
    text = config.read_text("utf-8")
    config.write_text(
        f'{text}base_url = "http://127.0.0.1:{port}"\n[server]\nport = {port}\n', "utf-8"
    )
    told = f"quarantine: the service that listens on port {port} was started in quarantine"
    run("migrate")
    alone = run("doctor").stdout
    with _serve(config.parent, "--quarantine") as process:
        assert process.stdout is not None
        process.stdout.readline()
        beside = run("doctor").stdout
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    with _serve(config.parent) as process:
        assert process.stdout is not None
        process.stdout.readline()
        usual = run("doctor").stdout
        process.terminate()
        process.communicate(timeout=PATIENCE_S)

    assert told in beside
    assert told not in alone + usual


def _failure(config: Path, *arguments: str) -> str:
    """What `serve` writes to standard error when it does not start; it exits with 2."""
    with _serve(config.parent, *arguments) as process:
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    return errors


def test_a_taken_port_is_named(config: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])

        assert f"port {port}" in _failure(config, "--port", port)


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
