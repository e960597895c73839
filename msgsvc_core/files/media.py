"""Downloads or inspects the files of messages at a project's URL."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import IO

from yarl import URL

from msgsvc_core.channels.context import MediaFile
from msgsvc_core.channels.failures import DeliveryError, LocalFailure, Reason
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.file_types import HEAD_BYTES, mime_type_of, name_of, problem_of
from msgsvc_core.content.outgoing import Media
from msgsvc_core.files.media_checks import MediaChecks
from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.service import FileGone, Files
from msgsvc_core.http_client import (
    CallError,
    Connector,
    HttpClient,
    Limits,
    NoConnectionInTime,
    NotConnected,
    StreamedResponse,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security.guard import ForbiddenTarget, NoPublicHost, OutboundGuard

#: Maximum bytes of a file that are kept in memory; the rest goes to disk.
IN_MEMORY_BYTES = 1024 * 1024

#: Seconds for a file of maximum size; to connect, for a response to start, and from one part to the next.
TOTAL_S, IDLE_S = 120.0, 15.0

#: Hosts of files may end them with the connection. One that was cut off fails its format's check, if any.
LIMITS = Limits(until_close=True)

#: Maximum redirects. Each URL is checked like the first.
MAX_REDIRECTS = 5

REDIRECTS = frozenset({301, 302, 303, 307, 308})

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
        self._client: HttpClient | None = None

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
            async for chunk in answer.parts():
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
        if self._client is not None:
            await self._client.close()
            self._client = None

    @asynccontextmanager
    async def _answer(self, media: Media) -> AsyncIterator[StreamedResponse]:
        """The host's response with the file, within the size limit as far as it is declared."""
        url = media.url
        for _ in range(MAX_REDIRECTS + 1):
            async with self._call(url) as answer:
                location = answer.headers.get("Location")
                if answer.status not in REDIRECTS or location is None:
                    self._check_answer(media, answer)
                    yield answer
                    return
                url = _redirected(url, location)
        raise invalid(f"its host sends us on more than {MAX_REDIRECTS} times")

    @asynccontextmanager
    async def _call(self, url: str) -> AsyncIterator[StreamedResponse]:
        """The response to one request. Raises `DeliveryError`."""
        try:
            self.guard.check_url(url)
            async with self._opened().stream(
                "GET", url, timeout_s=TOTAL_S, idle_s=IDLE_S, limits=LIMITS
            ) as answer:
                yield answer
        except ForbiddenTarget as error:
            raise invalid(str(error)) from None
        except (NotConnected, NoConnectionInTime) as error:
            refused = error.cause if isinstance(error, NotConnected) else None
            if isinstance(refused, ForbiddenTarget) and not isinstance(refused, NoPublicHost):
                raise invalid(str(refused)) from None
            raise unavailable("its host could not be reached") from None
        except CallError:
            raise unavailable("its host did not send all of it") from None

    def _check_answer(self, media: Media, answer: StreamedResponse) -> None:
        if answer.status >= 500 or answer.status in _LATER:
            raise unavailable(f"its host answered {answer.status}")
        if answer.status != 200:
            raise invalid(f"its host answered {answer.status}")
        if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
            # Requested uncompressed; the length of compressed content says nothing about its size.
            raise invalid("its host sends it compressed")
        if answer.content_length is not None:
            self._check_size(media, answer.content_length)

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

    async def _download(self, media: Media, answer: StreamedResponse, file: IO[bytes]) -> int:
        size = 0
        async for chunk in answer.parts():
            size += len(chunk)
            self._check_size(media, size)
            file.write(chunk)
        return size

    def _check_size(self, media: Media, size: int) -> None:
        limit = getattr(self._settings, f"max_{media.type}_bytes")
        if size > limit:
            raise invalid(f"it is larger than {limit} bytes")

    def _opened(self) -> HttpClient:
        if self._client is None:
            self._client = HttpClient(Connector(guard=self.guard), connect_s=IDLE_S)
        return self._client


def _redirected(url: str, location: str) -> str:
    """Where a redirect leads. Raises `DeliveryError` if it is no http or https URL."""
    try:
        target = URL(url).join(URL(location))
    except ValueError:
        raise invalid("its host sends us on to what is no address") from None
    if target.scheme not in {"http", "https"} or not target.raw_host:
        raise invalid("its host sends us on to what is no address")
    return str(target.with_fragment(None))


def _check(media: Media, head: bytes) -> None:
    if not head:
        raise invalid("it is empty")
    if problem := problem_of(media, head):
        raise invalid(problem)


def invalid(why: str) -> DeliveryError:
    return DeliveryError(Reason.INVALID_MESSAGE, f"media.url: {why}")


def unavailable(why: str) -> LocalFailure:
    return LocalFailure(Reason.PLATFORM_UNAVAILABLE, f"media.url: {why}")
