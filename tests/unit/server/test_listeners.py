"""Two processes that start at one address: one of them serves there, and the other says why it does not."""

import asyncio
import errno
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import cast

import pytest

from msgsvc_core.config.sections import ServerSettings
from msgsvc_core.config.settings import Settings
from msgsvc_core.kernel.errors import SettingsError
from msgsvc_core.server import ConnectionLimits, Server, bind, listener_of, serving_metrics
from msgsvc_core.telemetry import Metrics
from tests.unit.server.conftest import OwnRegistry, echo

#: Processes that a supervisor starts at the same moment.
STARTING = 8


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(uds=tmp_path / "msgsvc.sock")


def test_a_socket_whose_process_does_not_listen_yet_is_not_taken_from_it(
    settings: ServerSettings,
) -> None:
    path = settings.uds
    assert path is not None
    with listener_of(settings) as first, socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(SettingsError, match="another process listens there, or is starting"):
            listener_of(settings)
        first.listen()
        client.connect(str(path))
        first.accept()[0].close()

    assert list(path.parent.iterdir()) == []


def test_of_processes_that_start_at_the_same_moment_one_has_the_socket(
    settings: ServerSettings,
) -> None:
    moment = Barrier(STARTING)

    def start(_number: int) -> socket.socket | None:
        moment.wait()
        try:
            return listener_of(settings)
        except SettingsError:
            return None

    for _ in range(20):
        with ThreadPoolExecutor(STARTING) as pool:
            [listener] = [each for each in pool.map(start, range(STARTING)) if each is not None]
        with listener, socket.socket(socket.AF_UNIX) as client:
            listener.listen()
            client.connect(str(settings.uds))


def test_a_socket_and_a_lock_that_nobody_holds_are_replaced(settings: ServerSettings) -> None:
    path = settings.uds
    assert path is not None
    path.with_name("msgsvc.sock.lock").touch()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
        with listener_of(settings) as listener, socket.socket(socket.AF_UNIX) as client:
            listener.listen()
            client.connect(str(path))

    assert list(path.parent.iterdir()) == []


def test_a_lock_of_another_user_whose_process_was_killed_is_replaced(
    settings: ServerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = settings.uds
    assert path is not None
    lock = path.with_name("msgsvc.sock.lock")
    lock.touch()
    open_file = os.open

    def refusing(name: Path, *arguments: int) -> int:
        # As root, which tests may be run by, every file can be opened.
        if lock.exists():
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(name, *arguments)

    monkeypatch.setattr(os, "open", refusing)
    with listener_of(settings) as listener:
        listener.listen()

    assert list(path.parent.iterdir()) == []


def test_a_lock_that_can_not_be_opened_is_named(settings: ServerSettings) -> None:
    path = settings.uds
    assert path is not None
    path.with_name("msgsvc.sock.lock").symlink_to(path.with_name("elsewhere"))

    with pytest.raises(SettingsError, match=r"msgsvc\.sock\.lock can't be locked"):
        listener_of(settings)
    assert not path.with_name("elsewhere").exists()


async def test_a_port_at_which_another_process_listens_by_now_is_named() -> None:
    """Two sockets that don't listen yet may be bound to one port."""
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        second = bind("127.0.0.1", port)
        first.listen()
        guard = ConnectionLimits(
            ServerSettings(), "https://a.example/errors", cast("Metrics", OwnRegistry())
        )
        server = Server(echo, guard, signals=False)

        with second, pytest.raises(SettingsError, match=f"port {port}: Address already in use"):
            await server.serve(sockets=[second])


async def test_a_worker_whose_port_is_lost_while_it_starts_does_not_run_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bind("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        second = bind("127.0.0.1", port, "metrics.worker_port")
        first.listen()
        monkeypatch.setattr("msgsvc_core.server.figures.bind", lambda *_: second)
        settings = Settings.model_validate({"secret_keys": ("k" * 43 + "=",), "plugins": ()})
        runs = serving_metrics(cast("Metrics", OwnRegistry()), settings, port)

        with pytest.raises(SettingsError, match=f"worker_port: can't listen on .*port {port}"):
            async with asyncio.timeout(10), runs:
                pass
