"""Files in a request, read while they are sent: a form (multipart/form-data), or one file as the body."""

import asyncio
import os
import re
import secrets
from collections.abc import AsyncGenerator
from typing import IO

#: Bytes of a file that are in memory at a time.
PART_BYTES = 128 * 1024

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Upload:
    """A form with text fields and files (RFC 7578), sent in their order.

    Files are read from where they stand, and have to be seekable.
    """

    def __init__(self) -> None:
        self._boundary = secrets.token_hex(16)
        self._parts: list[bytes | tuple[IO[bytes], int]] = []
        self._end = f"--{self._boundary}--\r\n".encode()

    @property
    def content_type(self) -> str:
        """The media type of the body, for its header."""
        return f"multipart/form-data; boundary={self._boundary}"

    @property
    def size(self) -> int:
        """Bytes of the body."""
        sizes = [len(part) if isinstance(part, bytes) else part[1] for part in self._parts]
        return sum(sizes) + len(self._end)

    def add_field(self, name: str, value: str) -> None:
        """A text field."""
        self._parts.append(self._head(f'name="{_quoted(name)}"') + value.encode() + b"\r\n")

    def add_file(
        self,
        name: str,
        file: IO[bytes],
        *,
        filename: str,
        content_type: str = "application/octet-stream",
    ) -> None:
        """A file. Its name is sent as it is, in UTF-8: many servers decode nothing else."""
        about = f'name="{_quoted(name)}"; filename="{_quoted(filename)}"'
        self._parts += [self._head(about, content_type), (file, _size_of(file)), b"\r\n"]

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """The body. Raises `OSError` if a file has become shorter."""
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
                continue
            file, left = part
            while left:
                read = await asyncio.to_thread(file.read, min(PART_BYTES, left))
                if not read:
                    raise OSError("the file has become shorter while it was sent")
                left -= len(read)
                yield read
        if self._end:
            yield self._end

    def _head(self, about: str, content_type: str | None = None) -> bytes:
        lines = [f"--{self._boundary}", f"Content-Disposition: form-data; {about}"]
        if content_type is not None:
            if _CONTROL.search(content_type):
                raise ValueError("the type of a file has control characters")
            lines.append(f"Content-Type: {content_type}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class FileUpload(Upload):
    """One file as the whole body of a request."""

    def __init__(self, file: IO[bytes], content_type: str = "application/octet-stream") -> None:
        super().__init__()
        if _CONTROL.search(content_type):
            raise ValueError("the type of a file has control characters")
        self._content_type = content_type
        self._parts = [(file, _size_of(file))]
        self._end = b""

    @property
    def content_type(self) -> str:
        """The media type of the body, for its header."""
        return self._content_type


def _size_of(file: IO[bytes]) -> int:
    """Bytes of a file from where it stands."""
    begins = file.tell()
    size = file.seek(0, os.SEEK_END) - begins
    file.seek(begins)
    return size


def _quoted(name: str) -> str:
    """As a quoted string (RFC 7578, section 4.2, by RFC 2183). Raises ValueError for a control character."""
    if _CONTROL.search(name):
        raise ValueError("the name of a field or file has control characters")
    return name.replace("\\", "\\\\").replace('"', '\\"')
