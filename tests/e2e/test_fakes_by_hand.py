"""The fake platforms as somebody at the keyboard has them."""

import asyncio
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

import msgsvc_email.plugin
import msgsvc_sms.plugin
from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_devkit.fixtures import ServiceFactory
from tests.ports import free_ports
from tests.process import PATIENCE_S, STOP_S, until

pytestmark = pytest.mark.slow

#: What a fake prints after its settings.
_BEGUN = re.compile("You are Ann|block")

#: Its port among them.
_PORT = re.compile(r"^(?:.*127\.0\.0\.1:|port = )(\d+)", re.MULTILINE)


@pytest.mark.parametrize("kind", ["telegram", "max", "whatsapp", "matrix", "email", "sms"])
async def test_run_by_hand_it_ends_by_ctrl_c_and_tells_of_a_port_in_use(kind):
    module = f"msgsvc_devkit.platforms.{kind}"
    # Whoever runs the tests may have it ignored.
    run = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    run += f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", run, "--port", "0",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    said = ""
    while not _BEGUN.search(said) and (line := await process.stdout.readline()):
        said += line.decode()
    assert _BEGUN.search(said)
    found = _PORT.search(said)
    assert found is not None
    port = found[1]
    second = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, "--port", port, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await second.communicate()
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(PATIENCE_S):
        _, left = await process.communicate()

    assert complaint.decode() == f"port {port} is in use; name another: --port\n"
    assert left == b""
    assert process.returncode == 0


@contextmanager
def _by_hand(platform: str, printed: Path, *options: str) -> Iterator[None]:
    """A fake in a process of its own, which has begun, and ends by `quit`."""
    command = [sys.executable, "-m", f"msgsvc_devkit.platforms.{platform}", *options]
    with (
        printed.open("w") as output,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, text=True
        ) as fake,
    ):
        try:
            until(lambda: "You are Ann" in printed.read_text())
            yield
        finally:
            fake.communicate("quit\n", timeout=STOP_S)
    assert fake.returncode == 0, printed.read_text()


@pytest.mark.parametrize(
    ("platform", "plugin", "to"),
    [
        ("email", msgsvc_email.plugin, "ann@people.example"),
        ("sms", msgsvc_sms.plugin, "+4915120000001"),
    ],
)
async def test_a_channel_configured_by_what_a_fake_prints_sends_to_its_user(
    platform: str, plugin: ModuleType, to: str, make_service: ServiceFactory, tmp_path: Path
) -> None:
    printed = tmp_path / "printed"
    port = free_ports(2)  # email has IMAP at the next one
    with _by_hand(platform, printed, f"--port={port}"):
        found = tomllib.loads(printed.read_text().partition("You are Ann")[0])
        service = await make_service(
            extra_plugins=[(platform, plugin)],
            channels=found["channels"],
            use_clock=SystemClock(),
        )
        await service.channels["messenger_a"].send(to, OutgoingMessage("It is here", key="k1"))
        await asyncio.to_thread(until, lambda: "It is here" in printed.read_text())
        await service.stop()

    assert found["channels"]["messenger_a"]["plugin"] == platform
