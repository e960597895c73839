"""Files of messages as emails contain them: each is downloaded and encoded once for all its recipients."""

import asyncio
import binascii
from dataclasses import dataclass
from functools import partial

from msgsvc_core.channels import DeliveryError, Media, MediaFile, MediaSource, Reason

#: Seconds for which a file is kept for further recipients.
KEPT_S = 60.0

#: Bytes that are kept in all. A mailing has one file; messages with a file for each person are many.
MAX_KEPT_BYTES = 32_000_000

#: Characters of a line (RFC 2045, section 6.8).
LINE = 76

#: Type, URL and name.
_Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A file with its content in Base64; its lines end with CRLF."""

    filename: str
    mime_type: str
    lines: bytes


class EncodedFiles:
    """Downloads and encodes files, and keeps the last ones for a minute."""

    def __init__(self, media: MediaSource, max_bytes: int) -> None:
        self._media = media
        self._max_bytes = max_bytes
        self._loading: dict[_Key, asyncio.Task[EncodedFile]] = {}
        self._kept: dict[_Key, EncodedFile] = {}

    async def get(self, media: Media) -> EncodedFile:
        """Raises `DeliveryError` for one that can't be downloaded, or is too large."""
        key = (media.type, media.url, media.filename)
        if (kept := self._kept.get(key)) is not None:
            return kept
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._load(media))
            task.add_done_callback(partial(self._loaded, key))
        # If one recipient's attempt is cancelled, the others still need the file.
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Ends downloads, and forgets what is kept."""
        tasks = list(self._loading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._kept.clear()

    async def _load(self, media: Media) -> EncodedFile:
        async with self._media.fetch(media) as file:
            if file.size > self._max_bytes:
                raise DeliveryError(
                    Reason.INVALID_MESSAGE, f"media: has more than {self._max_bytes} bytes"
                )
            return await asyncio.to_thread(encoded, file)

    def _loaded(self, key: _Key, task: asyncio.Task[EncodedFile]) -> None:
        del self._loading[key]
        if task.cancelled() or task.exception() is not None:
            return
        file = self._kept[key] = task.result()
        asyncio.get_running_loop().call_later(KEPT_S, self._forget, key, file)
        while sum(len(one.lines) for one in self._kept.values()) > MAX_KEPT_BYTES:
            del self._kept[next(iter(self._kept))]

    def _forget(self, key: _Key, file: EncodedFile) -> None:
        if self._kept.get(key) is file:
            del self._kept[key]


def encoded(file: MediaFile) -> EncodedFile:
    """Reads and encodes a file, in some 20 ms for 10 MB."""
    text = binascii.b2a_base64(file.file.read(), newline=False)
    lines = [text[at : at + LINE] for at in range(0, len(text), LINE)]
    return EncodedFile(file.filename, file.mime_type, b"".join(line + b"\r\n" for line in lines))
