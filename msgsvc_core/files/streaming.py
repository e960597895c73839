"""The answer that a stored file becomes."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.names import attachment
from msgsvc_core.files.service import Files

#: Types that are told as they are: those that a browser takes for no page, even were it to show them.
_TOLD = ("image/", "video/", "audio/", "application/pdf", "application/zip", "application/gzip")

#: What somebody sent is saved and not shown; and where it is shown all the same, it is a page without
#: scripts, forms and origin, that loads nothing.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def stream(files: Files, file: StoredFile) -> Response:
    """The file to be saved, a chunk in memory at a time. Raises `FileGone` while nothing is sent yet."""
    pieces = files.content(file)
    # What can go wrong at once goes wrong before the answer has begun.
    first = await anext(pieces)
    told = file.mime_type.startswith(_TOLD) and not file.mime_type.endswith("+xml")
    return StreamingResponse(
        _all(first, pieces),
        media_type=file.mime_type if told else "application/octet-stream",
        headers={
            **_HEADERS,
            "Content-Disposition": attachment(file.filename),
            "Content-Length": str(file.size),
        },
    )


async def _all(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece
