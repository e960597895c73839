"""The fake platforms as somebody at the keyboard has them."""

import asyncio
import signal
import sys

import pytest

from tests.process import PATIENCE_S


@pytest.mark.parametrize("kind", ["telegram", "max", "whatsapp"])
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
    while "block" not in said and (line := await process.stdout.readline()):
        said += line.decode()
    assert "block" in said
    port = said.partition("http://127.0.0.1:")[2].partition('"')[0]
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
