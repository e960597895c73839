"""Files of messages: given to the homeserver once, and referred to by their `mxc://` URIs."""

import asyncio
from dataclasses import dataclass
from typing import Any

from msgsvc_core.channels import Media, MediaSource
from msgsvc_core.kernel.clock import Clock
from msgsvc_matrix.client import MatrixClient

#: Our types of media in the words of `m.room.message`.
MSGTYPES = {"image": "m.image", "video": "m.video", "document": "m.file"}

#: How long, in seconds, an uploaded file is reused, and how many are remembered: a broadcast sends one file
#: to many.
KEPT_S, KEPT = 600, 200

_Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class _Uploaded:
    fields: dict[str, Any]
    until_ms: int


class Uploads:
    """Uploaded files of one bot. Concurrent requests for the same file share one upload."""

    def __init__(self, *, clock: Clock, media: MediaSource, client: MatrixClient) -> None:
        self._clock = clock
        self._media = media
        self._client = client
        self._known: dict[_Key, _Uploaded] = {}
        self._turns: dict[_Key, asyncio.Lock] = {}

    async def fields(self, media: Media) -> dict[str, Any]:
        """The fields of a message about its file: `msgtype`, `url`, `filename` and `info`."""
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

    async def _upload(self, media: Media) -> dict[str, Any]:
        async with self._media.fetch(media) as found:
            return {
                "msgtype": MSGTYPES[media.type],
                "url": await self._client.upload(found),
                "filename": found.filename,
                "info": {"mimetype": found.mime_type, "size": found.size},
            }

    def _store(self, key: _Key, fields: dict[str, Any]) -> _Uploaded:
        self._known.pop(key, None)
        if len(self._known) >= KEPT:
            del self._known[next(iter(self._known))]
        until_ms = self._clock.monotonic_ms() + KEPT_S * 1000
        kept = self._known[key] = _Uploaded(fields, until_ms)
        return kept
