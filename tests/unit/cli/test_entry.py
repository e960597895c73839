"""The `msgsvc` script, before there is a command."""

import signal
import subprocess
import sys

#: `python -m msgsvc_core --help`, which stands still where it loads what its commands need.
HELD = """
import runpy, signal, sys, time

# In the background of a shell, which ignores it, Python would leave it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Held:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            print("loading", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Held())
sys.argv[1:] = ["--help"]
runpy.run_module("msgsvc_core", run_name="__main__", alter_sys=True)
"""


def test_ctrl_c_while_modules_are_loaded_leaves_no_traceback() -> None:
    command = [sys.executable, "-c", HELD]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert process.returncode == 130, errors
    assert "Traceback" not in errors
