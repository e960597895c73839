"""Files of messages, fetched from a project's URL where a platform does not do that itself."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING

import aiohttp
from yarl import URL

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.outgoing import Media
from msgsvc_core.security.guard import ForbiddenTarget, OutboundGuard

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Bytes of a file that are kept in memory; the rest goes to disk.
IN_MEMORY_BYTES = 1024 * 1024

CHUNK_BYTES = 64 * 1024

#: Seconds for a file of the largest size, and for an answer to begin.
TOTAL_S, FIRST_S = 120, 15

#: How files begin whose type a person would otherwise find out by a broken picture: the bytes, where
#: they stand, and what they are.
_BEGINNINGS = (
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftyp", "video/mp4"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
)


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A fetched file, open at its beginning. `mime_type` is what its content says."""

    file: IO[bytes]
    filename: str
    mime_type: str
    size: int


class MediaFiles:
    """`service.media`: fetches under the limits of the spec, and from public addresses alone."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        settings = service.settings.media
        self._guard = OutboundGuard(settings.allow_cidrs, settings.allow_http)
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def fetch(self, media: Media) -> AsyncIterator[MediaFile]:
        """The file behind `media.url`, gone when the block ends.

        Raises `DeliveryError`: `invalid_message` for what will not do however often it is tried, and
        `platform_unavailable` for a host that may yet answer.
        """
        with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
            try:
                size = await self._download(media, file)
            except aiohttp.ClientConnectorError as error:
                if isinstance(error.os_error, ForbiddenTarget):
                    raise _invalid(str(error.os_error)) from None
                raise _unavailable("its host could not be reached") from None
            except (aiohttp.ClientError, TimeoutError, OSError):
                raise _unavailable("its host did not send all of it") from None
            file.seek(0)
            mime_type = _mime_type(file.read(16))
            if media.type != "document" and not mime_type.startswith(f"{media.type}/"):
                raise _invalid(f"it is no {media.type}")
            file.seek(0)
            yield MediaFile(file, media.filename or _name_in(media.url), mime_type, size)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _download(self, media: Media, file: IO[bytes]) -> int:
        most = getattr(self._service.settings.media, f"max_{media.type}_bytes")
        async with self._opened().get(media.url) as answer:
            if answer.status >= 500 or answer.status == 429:
                raise _unavailable(f"its host answered {answer.status}")
            if answer.status != 200:
                raise _invalid(f"its host answered {answer.status}")
            size = 0
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                size += len(chunk)
                if size > most:
                    raise _invalid(f"it is larger than {most} bytes")
                file.write(chunk)
        if not size:
            raise _invalid("it is empty")
        return size

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._guard.connector(limit=20),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                headers={"User-Agent": "msgsvc", "Accept-Encoding": "identity"},
                # 64 KiB of gzip can hold 64 MiB.
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(
                    total=TOTAL_S, sock_connect=FIRST_S, sock_read=FIRST_S
                ),
            )
        return self._session


def _mime_type(head: bytes) -> str:
    for offset, beginning, mime_type in _BEGINNINGS:
        if head.startswith(beginning, offset):
            return mime_type
    return "application/octet-stream"


def _name_in(url: str) -> str:
    return PurePosixPath(URL(url).path).name or "file"


def _invalid(why: str) -> DeliveryError:
    return DeliveryError(Reason.INVALID_MESSAGE, f"media.url: {why}")


def _unavailable(why: str) -> DeliveryError:
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, f"media.url: {why}")
