"""Files that the platform does not fetch itself: uploaded once, and referred to by their tokens."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgsvc_core.channels import Media, MediaSource
from msgsvc_core.kernel.clock import Clock
from msgsvc_max.client import MaxClient

#: Our types of media in the platform's words (schema: UploadType).
UPLOAD_TYPES = {"image": "image", "video": "video", "document": "file"}

#: How long an uploaded file is reused, and how many are remembered: a broadcast sends one file to many,
#: and a message waiting for a large video must not upload it again on every retry.
KEPT_S, KEPT = 600, 200

_Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class _Uploaded:
    token: str
    until_ms: int


class Uploads:
    """Upload tokens of one bot's files. Concurrent requests for the same file share one upload."""

    def __init__(self, *, clock: Clock, media: MediaSource, client: MaxClient) -> None:
        self._clock = clock
        self._media = media
        self._client = client
        self._known: dict[_Key, _Uploaded] = {}
        self._turns: dict[_Key, asyncio.Lock] = {}

    async def token(self, media: Media) -> str:
        """The token of the file behind `media`. Raises `DeliveryError`."""
        key = (media.type, media.url, media.filename)
        turn = self._turns.setdefault(key, asyncio.Lock())
        try:
            async with turn:
                known = self._known.get(key)
                if known is None or known.until_ms <= self._clock.monotonic_ms():
                    known = self._store(key, await self._upload(media))
                return known.token
        finally:
            if not turn.locked():
                self._turns.pop(key, None)

    async def _upload(self, media: Media) -> str:
        async with self._media.fetch(media) as found:
            return await self._client.upload(UPLOAD_TYPES[media.type], found.file, found.filename)

    def _store(self, key: _Key, token: str) -> _Uploaded:
        self._known.pop(key, None)
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        until_ms = self._clock.monotonic_ms() + KEPT_S * 1000
        kept = self._known[key] = _Uploaded(token, until_ms)
        return kept


def attachment(media: Media, payload: Mapping[str, str] | None) -> dict[str, Any]:
    """A file of a message (schema: AttachmentRequest); `payload` holds its `token` or `url`."""
    return {"type": UPLOAD_TYPES[media.type], "payload": dict(payload or {})}
