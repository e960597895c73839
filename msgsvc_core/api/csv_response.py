"""A CSV file as a streamed response."""

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse


async def csv_response(pieces: AsyncIterator[bytes], filename: str) -> Response:
    """Streams the pieces as a file download. The first piece is computed before the response starts, so
    early errors get a proper error response."""
    first = await anext(pieces)
    return StreamingResponse(
        _all(first, pieces),
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{filename}"',
            "Cache-Control": "no-store",
        },
    )


async def _all(first: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in others:
        yield piece
