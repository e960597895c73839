"""A listening unix socket, its file, and the lock of the process that serves there."""

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path

from msgsvc_core.kernel.errors import SettingsError

#: Permissions of the file: a proxy needs the group. Whoever connects may name any client's address.
FILE_MODE = 0o660

#: Attempts to lock a file that others remove meanwhile.
LOCK_TRIES = 100


class UnixListener(socket.socket):
    """A bound unix socket that is not listening yet. Closing it removes its file.

    The file of a process that was killed is replaced. Raises `SettingsError` if another process listens on it
    or is starting to, or if it can't be created.
    """

    def __init__(self, path: Path) -> None:
        _check_place(path)
        super().__init__(socket.AF_UNIX, socket.SOCK_STREAM)
        self._path = path
        self._file: tuple[int, int] | None = None
        self._lock: _Lock | None = None
        try:
            # Nobody listens yet on the socket of a process that is starting, so only the lock tells it from
            # one that a killed process has left.
            self._lock = _Lock(path.with_name(f"{path.name}.lock"))
            check_uds(path)
            path.unlink(missing_ok=True)
            self.bind(os.fspath(path))
            self._file = _identity(path)
            path.chmod(FILE_MODE)
        except OSError as error:
            self.close()
            raise _refusal(path, error) from error
        except SettingsError:
            self.close()
            raise

    def close(self) -> None:
        self.remove_file()
        super().close()

    def remove_file(self) -> None:
        """Lets nobody connect any more. A file that another process has put in its place stays."""
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None and _identity(self._path) == file:
                self._path.unlink()
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()


class _Lock:
    """A locked file. The kernel unlocks it when the process ends, however it ends.

    Raises `OSError` if another process has it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        for _ in range(LOCK_TRIES):
            if self._is_acquired():
                return
            # The one who had it has removed its file meanwhile.
        raise OSError(None, f"{path.name} can't be locked")

    def _is_acquired(self) -> bool:
        try:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except PermissionError as error:
            # Left by a process of another user that was killed. The folder is ours.
            try:
                self._path.unlink()
            except OSError:
                text = f"{self._path.name} can't be locked: {error.strerror}; delete it"
                raise OSError(None, text) from error
            return False
        except OSError as error:
            raise OSError(None, f"{self._path.name} can't be locked: {error.strerror}") from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            opened = os.fstat(self._descriptor)
            if _identity(self._path) == (opened.st_dev, opened.st_ino):
                return True
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(self._descriptor)
            raise OSError(None, "another process listens there, or is starting to") from None
        except OSError as error:
            os.close(self._descriptor)
            raise OSError(None, f"{self._path.name} can't be locked: {error.strerror}") from error
        os.close(self._descriptor)
        return False

    def release(self) -> None:
        with suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)


def check_uds(path: Path) -> None:
    """Raises `SettingsError` unless a unix socket can be created there: nothing is there, or a socket on
    which nobody listens."""
    _check_place(path)
    try:
        if _is_listened_on(path):
            raise OSError(None, "another process listens there")
    except OSError as error:
        raise _refusal(path, error) from error


def _check_place(path: Path) -> None:
    try:
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OSError(None, f"no file can be created in {path.parent}")
        if path.is_symlink() or (path.exists() and not path.is_socket()):
            raise OSError(None, "it is not a socket")
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
