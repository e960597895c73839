"""Notices that a second process serves the same SQLite file."""

import errno
import socket
from pathlib import Path


class ServedFile:
    """A mark on a SQLite file while a service serves it.

    The mark is an abstract unix socket with the file's identity in its name: it leaves nothing on the disk,
    and ends with its process. Other network namespaces, such as those of containers, don't see it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: socket.socket | None = None

    def acquire(self) -> bool:
        """False if another service has marked the file. True also if there is no file, or no such socket."""
        try:
            found = self._path.stat()
            mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:
            return True
        try:
            mark.bind(f"\0msgsvc-{found.st_dev:x}-{found.st_ino:x}")
        except OSError as error:
            mark.close()
            return error.errno != errno.EADDRINUSE
        self._mark = mark
        return True

    def release(self) -> None:
        if self._mark is not None:
            self._mark.close()
            self._mark = None
