"""The answer that a stored file becomes."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.names import attachment
from msgsvc_core.files.service import FileGone, Files
from msgsvc_core.kernel.errors import NotFound

#: Types that are told as they are: those that a browser takes for no page, even were it to show them.
_TOLD = ("image/", "video/", "audio/", "application/pdf", "application/zip", "application/gzip")

#: What somebody sent is saved and not shown; and where it is shown all the same, it is a page without
#: scripts, forms and origin, that loads nothing.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
}


async def stream(files: Files, file: StoredFile) -> Response:
    """The file to be saved, a chunk in memory at a time. Raises `NotFound` for one that is gone now."""
    pieces = files.content(file)
    # What can go wrong at once goes wrong before the answer has begun.
    try:
        first = await anext(pieces)
    except FileGone:
        raise NotFound("there is no file {file_id!r} any more", file_id=file.file_id) from None
    return saved(
        _all(first, pieces), filename=file.filename, mime_type=file.mime_type, size=file.size
    )


def saved(
    pieces: AsyncIterator[bytes], *, filename: str, mime_type: str, size: int
) -> StreamingResponse:
    """The answer for a file that somebody sent, with headers that keep it from being a page."""
    told = mime_type.startswith(_TOLD) and not mime_type.endswith("+xml")
    return StreamingResponse(
        pieces,
        media_type=mime_type if told else "application/octet-stream",
        headers={
            **_HEADERS,
            "Content-Disposition": attachment(filename),
            "Content-Length": str(size),
        },
    )


async def _all(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece
