"""A command on a terminal of its own, as somebody types to it."""

import os
import pty
from collections.abc import Mapping, Sequence
from pathlib import Path


def on_a_terminal(
    command: Sequence[str], folder: Path, lines: Sequence[str], environment: Mapping[str, str]
) -> tuple[int, str]:
    """The exit code of a command, and what is seen while these lines are typed.

    A line is typed when a question stands there: `...: ` at the end, as all of typer's do.
    """
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - the child, of which no coverage is told
        os.chdir(folder)
        os.execve(command[0], list(command), dict(environment))  # noqa: S606 - no shell is wanted
    shown, left = "", list(lines)
    with open(terminal, "rb+", buffering=0) as screen:
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
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown
