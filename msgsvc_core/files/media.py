"""Downloads or inspects the files of messages at a project's URL."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import IO

import aiohttp

from msgsvc_core.channels.context import MediaFile
from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES, mime_type_of, name_of, problem_of
from msgsvc_core.content.outgoing import Media
from msgsvc_core.files.media_checks import MediaChecks
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.service import FileGone, Files
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security.connector import GuardedConnector
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

#: Maximum bytes of a file that are kept in memory; the rest goes to disk.
IN_MEMORY_BYTES = 1024 * 1024

CHUNK_BYTES = 64 * 1024

#: Seconds for a file of maximum size, and for a response to start.
TOTAL_S, FIRST_S = 120, 15

#: Maximum redirects. Each URL is checked like the first.
MAX_REDIRECTS = 5

#: Statuses besides 5xx after which a retry may succeed.
_LATER = frozenset({408, 425, 429})


class MediaFiles:
    """`service.media`: downloads files within the limits of `[media]`, only from public addresses.

    Its methods raise `DeliveryError`: `invalid_message` for a permanent failure, and `platform_unavailable`
    for a host that may respond later.
    """

    def __init__(self, *, clock: Clock, settings: MediaSettings, files: Files) -> None:
        self._settings = settings
        self._files = files
        self._clock = clock
        #: Decides which addresses in URLs given by others may be called.
        self.guard = OutboundGuard(settings.allow_cidrs, settings.allow_http)
        self._session: aiohttp.ClientSession | None = None

    @cached_property
    def checks(self) -> MediaChecks:
        """Cached checks of the files of messages."""
        return MediaChecks(clock=self._clock, settings=self._settings, inspect=self.inspect)

    @asynccontextmanager
    async def fetch(self, media: Media) -> AsyncIterator[MediaFile]:
        """The file at `media.url`, deleted at the end of the block."""
        with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as file:
            size = await self._get(media, file)
            file.seek(0)
            head = file.read(HEAD_BYTES)
            _check(media, head)
            file.seek(0)
            yield MediaFile(file, name_of(media), mime_type_of(head), size)

    async def inspect(self, media: Media) -> None:
        """Whether the file may be attached to a message: its size, and its type by its first bytes.

        If the host reports the length, only the start of the file is downloaded.
        """
        if self._files.is_own_address(media.url):
            stored = await self._stored(media)
            _check(media, await self._files.head(stored))
            return
        async with self._answer(media) as answer:
            head = b""
            size = 0
            async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
                size += len(chunk)
                if len(head) < HEAD_BYTES:
                    head = (head + chunk)[:HEAD_BYTES]
                self._check_size(media, size)
                if answer.content_length is not None and len(head) == HEAD_BYTES:
                    break
        _check(media, head)

    async def close(self) -> None:
        if "checks" in self.__dict__:
            await self.checks.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    @asynccontextmanager
    async def _answer(self, media: Media) -> AsyncIterator[aiohttp.ClientResponse]:
        """The host's response with the file, within the size limit as far as it is declared."""
        try:
            async with self._opened().get(media.url, max_redirects=MAX_REDIRECTS) as answer:
                if answer.status >= 500 or answer.status in _LATER:
                    raise unavailable(f"its host answered {answer.status}")
                if answer.status != 200:
                    raise invalid(f"its host answered {answer.status}")
                if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
                    # Requested uncompressed; the length of compressed content says nothing about its size.
                    raise invalid("its host sends it compressed")
                if answer.content_length is not None:
                    self._check_size(media, answer.content_length)
                yield answer
        except aiohttp.ClientConnectorError as error:
            refused = error.os_error
            if isinstance(refused, ForbiddenTarget) and not isinstance(refused, NoPublicHost):
                raise invalid(str(refused)) from None
            raise unavailable("its host could not be reached") from None
        except aiohttp.TooManyRedirects:
            raise invalid(f"its host sends us on more than {MAX_REDIRECTS} times") from None
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
            raise invalid("its host sends us on to what is no address") from None
        except (aiohttp.ClientError, TimeoutError, OSError):
            raise unavailable("its host did not send all of it") from None

    async def _get(self, media: Media, file: IO[bytes]) -> int:
        """Writes the content into `file`; returns its size."""
        if not self._files.is_own_address(media.url):
            async with self._answer(media) as answer:
                return await self._download(media, answer, file)
        stored = await self._stored(media)
        try:
            async for chunk in self._files.content(stored):
                file.write(chunk)
        except FileGone:
            raise invalid("the file was removed") from None
        return stored.size

    async def _stored(self, media: Media) -> StoredFile:
        """A file that is stored here is read from the database, not over the network."""
        stored = await self._files.at_address(media.url)
        if stored is None:
            raise invalid("the file is gone, or its address has expired")
        self._check_size(media, stored.size)
        return stored

    async def _download(self, media: Media, answer: aiohttp.ClientResponse, file: IO[bytes]) -> int:
        size = 0
        async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
            size += len(chunk)
            self._check_size(media, size)
            file.write(chunk)
        return size

    def _check_size(self, media: Media, size: int) -> None:
        most = getattr(self._settings, f"max_{media.type}_bytes")
        if size > most:
            raise invalid(f"it is larger than {most} bytes")

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=GuardedConnector(self.guard, limit=100),
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


def _check(media: Media, head: bytes) -> None:
    if not head:
        raise invalid("it is empty")
    if problem := problem_of(media, head):
        raise invalid(problem)


def invalid(why: str) -> DeliveryError:
    return DeliveryError(Reason.INVALID_MESSAGE, f"media.url: {why}")


def unavailable(why: str) -> LocalFailure:
    return LocalFailure(Reason.PLATFORM_UNAVAILABLE, f"media.url: {why}")
