"""The core's services for channel plugins."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import IO, Protocol, TypeVar

from msgsvc_core.content.outgoing import Media
from msgsvc_core.db import Database
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.security import SecretBox
from msgsvc_core.security.guard import OutboundGuard

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A fetched file, opened at its start. `mime_type` is detected from its content."""

    file: IO[bytes]
    filename: str
    mime_type: str
    size: int


class MediaSource(Protocol):
    """Fetches files of messages for channels that upload them to their platform."""

    @property
    def guard(self) -> OutboundGuard:
        """The guard that decides which addresses in URLs given by others may be called."""
        ...

    def fetch(self, media: Media) -> AbstractAsyncContextManager[MediaFile]:
        """The file at `media.url`, deleted at the end of the block.

        Raises `DeliveryError`: `invalid_message` for a permanent failure, and `platform_unavailable` for a
        host that may respond later.
        """
        ...


class StoredFiles(Protocol):
    """The files that are stored here."""

    def is_own_address(self, url: str) -> bool:
        """Whether the URL is one of ours, signed or not."""
        ...


class ProvidedObjects(Protocol):
    """Finds the object of a type that a plugin registered (hook `register_services`)."""

    def __call__(self, kind: type[T], /) -> T: ...


async def _never(_channel: str, _chat_id: str) -> None:
    """No chat is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """Passed to a kind's `create`, which gives the channel what it uses.

    `media` returns the file downloader; `is_own_address` says whether a file is stored here and need not be
    downloaded. `provided` finds objects of the channel's own plugin: use it in calls only, because channels
    are created before plugins' objects.
    `last_update_ms` finds when the last update of a chat was received (key of the channel, id of the chat),
    for platforms that let bots write freely only for some time after it; None for an unknown chat. It raises
    `DatabaseUnavailable`. `default_country` is that of phone numbers without a country code.
    """

    clock: Clock
    db: Database
    secrets: SecretBox
    #: The public URL of the service.
    base_url: str
    media: Callable[[], MediaSource]
    is_own_address: Callable[[str], bool]
    provided: ProvidedObjects
    last_update_ms: Callable[[str, str], Awaitable[int | None]] = _never
    default_country: str | None = None
