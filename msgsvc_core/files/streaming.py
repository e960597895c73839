"""Responses with the content of stored files."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from msgsvc_core.files.models import StoredFile
from msgsvc_core.files.names import attachment
from msgsvc_core.files.service import FileGone, Files
from msgsvc_core.kernel.errors import NotFound

#: MIME types sent unchanged: browsers do not render them as a page.
_TOLD = ("image/", "video/", "audio/", "application/pdf", "application/zip", "application/gzip")

#: The media types that downloads have besides `application/octet-stream`, as ranges.
FILE_TYPES = tuple(f"{told}*" if told.endswith("/") else told for told in _TOLD)

#: Uploads are downloads, not displayed inline; if a browser displays one anyway, it is without scripts,
#: forms, origin and external resources.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
}


async def stream(files: Files, file: StoredFile) -> Response:
    """The file as a download, streamed by chunks. Raises `NotFound` if it was removed."""
    pieces = files.content(file)
    # Errors of the first chunk are raised before the response starts.
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
    """The response for an uploaded file, with headers that prevent browsers from rendering it as a page."""
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
