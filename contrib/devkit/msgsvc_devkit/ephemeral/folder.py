"""The folder of an ephemeral service's database."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Where Linux has a file system in memory that every program may use.
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder made in it is private

#: Free bytes that it needs. Containers often get 64 MiB, which a test with files could fill.
LEAST_FREE = 256 * 1024 * 1024


@contextmanager
def private_folder() -> Iterator[Path]:
    """A new folder that only this user can read, in memory if possible; removed when the block ends, and
    when the process is killed."""
    place = IN_MEMORY if _has_room(IN_MEMORY) else None
    folder = Path(tempfile.mkdtemp(prefix="msgsvc-ephemeral-", dir=place))
    # The shell waits for the end of its input, which comes when this process closes it or ends, even by
    # kill -9. In a session of its own, Ctrl-C doesn't reach it.
    with subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; rm -rf "$1"', "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    ):
        yield folder


def _has_room(place: Path) -> bool:
    try:
        return shutil.disk_usage(place).free >= LEAST_FREE
    except OSError:
        return False
