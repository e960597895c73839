"""`msgsvc doctor` about what is around the service: its platform, disk, folders, port, clock and address."""

import asyncio
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.cli import checks, live_checks, running_checks
from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_devkit.platforms.telegram import FakeTelegram
from tests.ports import free_ports
from tests.unit.cli.test_doctor import _set


def _telegram(config: Path, url: str, token: str) -> None:
    bot = f'plugin = "telegram", token = "{token}", base_url = "{url}"'
    _set(config, 'plugins = ["telegram"]')
    _set(config, f"channels = {{ telegram = {{ {bot} }} }}")


async def test_a_token_is_checked_before_the_first_start(run: Any, config: Path) -> None:
    async with FakeTelegram() as platform:
        _telegram(config, platform.url, platform.bot.token)
        well = await asyncio.to_thread(run, "doctor")
        _telegram(config, platform.url, f"123456:{'B' * 35}")
        refused = await asyncio.to_thread(run, "doctor")

    assert (well.exit_code, refused.exit_code) == (0, 1)
    assert "problem  channel telegram" in refused.stdout
    assert "ok       clock: agrees with the messengers'" in well.stdout
    assert not config.with_name("msgsvc.db").exists()


@pytest.mark.parametrize(
    ("hours", "says"), [(3, "180 min ahead of"), (-3, "180 min behind"), (0, "agrees")]
)
async def test_a_wrong_clock_is_told_by_that_of_the_messengers(
    config: Path, hours: int, says: str
) -> None:
    async with FakeTelegram() as platform:
        _telegram(config, platform.url, platform.bot.token)
        clock = FakeClock(datetime.now(UTC) + timedelta(hours=hours))
        service = Service(load_settings(config, env={}), clock=clock)
        await service.open_database()
        found = [each async for each in live_checks.check_channels(service)]
        await service.channels.close()
        await service.db.disconnect()

    [about_clock] = [each for each in found if each.subject == "clock"]
    assert says in about_clock.text


def test_a_full_disk_is_a_problem_and_a_scarce_one_a_warning(
    run: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_checks, "SCARCE_MIB", 1 << 40)
    scarce = run("doctor")
    monkeypatch.setattr(live_checks, "FULL_MIB", 1 << 40)
    full = run("doctor")

    assert (scarce.exit_code, full.exit_code) == (0, 1)
    assert "warning  disk:" in scarce.stdout
    assert "problem  disk: it is full" in full.stdout


def test_a_folder_that_takes_no_files_is_a_problem(run: Any, config: Path) -> None:
    # Not even root can create a file there.
    _set(config, 'database_url = "sqlite:////proc/msgsvc.db"')
    result = run("doctor")

    assert result.exit_code == 1
    assert "problem  database folder: no file can be created in /proc" in result.stdout


def test_a_port_that_another_program_has_is_a_warning(
    run: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The other program never answers.
    monkeypatch.setattr(running_checks, "READY_S", 0.1)
    port = free_ports()
    _set(config, f'base_url = "http://127.0.0.1:{port}"')
    config.write_text(f"{config.read_text('utf-8')}[server]\nport = {port}\n", encoding="utf-8")
    free = run("doctor").stdout
    with socket.create_server(("127.0.0.1", port)):
        taken = run("doctor").stdout

    assert f"ok       port: {port} of 127.0.0.1 is free" in free
    assert f"warning  port: server: can't listen on 127.0.0.1, port {port}" in taken


@pytest.mark.parametrize(
    ("base_url", "exit_code", "says"),
    [
        ("https://shop.example/notify", 0, "addresses begin with /notify"),
        ("https://shop.example/docs", 1, "its path /docs begins as paths of the service do"),
        ("https://shop.example/no tify", 1, "letters, digits"),
        ("https://shop.example/?a=b", 1, "ends with the host or a path"),
    ],
)
def test_a_path_in_the_address_is_checked(
    run: Any, config: Path, base_url: str, exit_code: int, says: str
) -> None:
    _set(config, f'base_url = "{base_url}"')
    result = run("doctor")

    assert result.exit_code == exit_code
    assert says in result.stdout


def test_in_a_container_what_concerns_the_machine_is_no_warning(
    run: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text(f'{config.read_text("utf-8")}[server]\nhost = "0.0.0.0"\n', encoding="utf-8")
    _set(config, 'base_url = "http://127.0.0.1:9000"')
    config.chmod(0o644)
    mark = tmp_path / "containerenv"
    mark.touch()
    monkeypatch.setattr(checks, "CONTAINER_MARKS", (mark,))
    result = run("doctor")

    assert result.exit_code == 0
    assert "to which port 8000 is to be published" in result.stdout
    assert "other users of this machine" not in result.stdout


def test_a_unix_socket_is_looked_at_and_left_alone(
    run: Any, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever listens there never answers.
    monkeypatch.setattr(running_checks, "READY_S", 0.1)
    path = config.with_name("msgsvc.sock")
    _set(config, 'base_url = "https://msgsvc.example"')
    config.write_text(f'{config.read_text("utf-8")}[server]\nuds = "{path}"\n', encoding="utf-8")
    free = run("doctor").stdout
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        stale = run("doctor").stdout
        other.listen()
        taken = run("doctor").stdout

    assert f"ok       unix socket: {path} is free" in free
    assert f"ok       unix socket: {path} is free" in stale
    assert "another process listens there" in taken
    assert path.is_socket()
    assert f"which a proxy forwards to {path}" in free
    assert "trusted_proxies" not in free
