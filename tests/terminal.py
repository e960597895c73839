"""A command of the service on a terminal of its own, as somebody types to it."""

import os
import pty
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgsvc_devkit.deadlines import patient
from tests.forking import ForkedProcess

#: Seconds that a command gets to end once its terminal is closed.
END_S = patient(60.0)


def on_a_terminal(
    arguments: Sequence[str], folder: Path, lines: Sequence[str], environment: Mapping[str, str]
) -> tuple[int, str]:
    """The exit code of a command, and what is seen while these lines are typed.

    A line is typed when a question stands there: `...: ` at the end, as all of typer's do.
    """
    ours, theirs = pty.openpty()
    process = ForkedProcess(arguments, environment, Path(os.ttyname(theirs)), folder)
    # Its other output is closed once it has the terminal.
    with process.stdout:
        process.stdout.read()
    os.close(theirs)
    shown, left = "", list(lines)
    with open(ours, "rb+", buffering=0) as screen:
        while True:
            try:
                piece = screen.read(4096)
            except OSError:  # EIO: nobody holds the other end any more.
                break
            if not piece:
                break
            shown += piece.decode()
            if shown.endswith(": ") and left:
                screen.write(f"{left.pop(0)}\n".encode())
                shown += "\n"
    return process.wait(END_S), shown
