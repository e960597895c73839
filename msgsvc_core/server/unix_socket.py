"""A listening unix socket and its file."""

import os
import socket
from contextlib import suppress
from pathlib import Path

from msgsvc_core.kernel.errors import SettingsError

#: Permissions of the file: a proxy needs the group. Whoever connects may name any client's address.
FILE_MODE = 0o660


class UnixListener(socket.socket):
    """A bound unix socket that is not listening yet. Closing it removes its file.

    The file of a process that was killed is replaced. Raises `SettingsError` if another process listens on
    it, or if it can't be created.
    """

    def __init__(self, path: Path) -> None:
        check_uds(path)
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        self._file: tuple[int, int] | None = None
        try:
            path.unlink(missing_ok=True)
            self.bind(os.fspath(path))
            self._file = _identity(path)
            path.chmod(FILE_MODE)
        except OSError as error:
            self.close()
            raise _refusal(path, error) from error

    def close(self) -> None:
        self.remove_file()
        super().close()

    def remove_file(self) -> None:
        """Lets nobody connect any more. A file that another process has put in its place stays."""
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None and _identity(self._path) == file:
                self._path.unlink()


def check_uds(path: Path) -> None:
    """Raises `SettingsError` unless a unix socket can be created there: nothing is there, or a socket on
    which nobody listens."""
    try:
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OSError(None, f"no file can be created in {path.parent}")
        if path.is_symlink() or (path.exists() and not path.is_socket()):
            raise OSError(None, "it is not a socket")
        if _is_listened_on(path):
            raise OSError(None, "another process listens there")
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: Path, error: OSError) -> SettingsError:
    reason = error.strerror or str(error)
    return SettingsError(f"server.uds: can't listen on {path}: {reason}; name another")


def _identity(path: Path) -> tuple[int, int]:
    found = path.lstat()
    return found.st_dev, found.st_ino


def _is_listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A full queue of a busy process is no reason to wait.
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except BlockingIOError:
            return True
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True
