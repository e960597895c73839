"""The `msgsvc` script, before there is a command."""

import signal
import subprocess
import sys


def test_ctrl_c_while_modules_are_loaded_leaves_no_traceback() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "msgsvc_core", "--help"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        # Each module is told of when it is loaded: what the commands need is being loaded now.
        for line in process.stderr:
            if line.endswith(b" typer\n"):
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()

    assert process.returncode == 130
    assert b"Traceback" not in rest
