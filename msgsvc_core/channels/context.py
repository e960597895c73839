"""What of the core a channel may use."""

from collections.abc import Callable
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
    """A fetched file, open at its beginning. `mime_type` is what its content says."""

    file: IO[bytes]
    filename: str
    mime_type: str
    size: int


class MediaSource(Protocol):
    """Fetches files of messages for channels that hand them to their platform."""

    @property
    def guard(self) -> OutboundGuard:
        """What of the addresses that others name may be called."""
        ...

    def fetch(self, media: Media) -> AbstractAsyncContextManager[MediaFile]:
        """The file behind `media.url`, gone when the block ends.

        Raises `DeliveryError`: `invalid_message` for what will not do however often it is tried, and
        `platform_unavailable` for a host that may yet answer.
        """
        ...


class ProvidedObjects(Protocol):
    """Finds the object of a type that a plugin registered (hook `register_services`)."""

    def __call__(self, kind: type[T], /) -> T: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelContext:
    """Given to a kind's `create`, which hands the channel what it uses.

    `media` makes what fetches files when it is first needed, as its HTTP client takes megabytes;
    `is_own_address` tells whether a file is kept here, and need not be read at its address. `provided` finds
    objects of the channel's own plugin: ask it in calls, as channels are made before plugins' objects.
    """

    clock: Clock
    db: Database
    secrets: SecretBox
    #: Where the service is reached from outside.
    base_url: str
    media: Callable[[], MediaSource]
    is_own_address: Callable[[str], bool]
    provided: ProvidedObjects
