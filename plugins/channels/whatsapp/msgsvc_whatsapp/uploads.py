"""Files of messages: uploaded once, and referred to by their ids.

The platform also fetches files by URL, but says only after the message was accepted that it could not.
"""

import asyncio
from dataclasses import dataclass

from msgsvc_core.channels import Media, MediaSource
from msgsvc_core.kernel.clock import Clock
from msgsvc_whatsapp.client import WhatsAppClient, printable

#: How long an uploaded file is reused, and how many are remembered: a broadcast sends one file to many,
#: and a message waiting for a large video must not upload it again on every retry.
KEPT_S, KEPT = 600, 200

_Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class _Uploaded:
    fields: dict[str, str]
    until_ms: int


class Uploads:
    """Uploaded files of one number. Concurrent requests for the same file share one upload."""

    def __init__(self, *, clock: Clock, media: MediaSource, client: WhatsAppClient) -> None:
        self._clock = clock
        self._media = media
        self._client = client
        self._known: dict[_Key, _Uploaded] = {}
        self._turns: dict[_Key, asyncio.Lock] = {}

    async def fields(self, media: Media) -> dict[str, str]:
        """The file behind `media`, as a message names it (schema: MediaObject). Raises `DeliveryError`."""
        key = (media.type, media.url, media.filename)
        turn = self._turns.setdefault(key, asyncio.Lock())
        try:
            async with turn:
                known = self._known.get(key)
                if known is None or known.until_ms <= self._clock.monotonic_ms():
                    known = self._store(key, await self._upload(media))
                return known.fields
        finally:
            if not turn.locked():
                self._turns.pop(key, None)

    async def _upload(self, media: Media) -> dict[str, str]:
        async with self._media.fetch(media) as found:
            media_id = await self._client.upload(found.file, found.filename, found.mime_type)
            named = {"filename": printable(found.filename)} if media.type == "document" else {}
            return {"id": media_id, **named}

    def _store(self, key: _Key, fields: dict[str, str]) -> _Uploaded:
        self._known.pop(key, None)
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        until_ms = self._clock.monotonic_ms() + KEPT_S * 1000
        kept = self._known[key] = _Uploaded(fields, until_ms)
        return kept
