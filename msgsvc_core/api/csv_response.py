"""A CSV file as a streamed response."""

from collections.abc import AsyncIterator

from starlette.responses import Response

from msgsvc_core.api.exports import ExportResponse, Exports


async def csv_response(
    exports: Exports, project_id: str, pieces: AsyncIterator[bytes], filename: str
) -> Response:
    """Streams the pieces as a file download. The first piece is computed before the response starts, so
    early errors get a proper error response.

    Raises `RateLimitProject` if too many exports are under way.
    """
    stream = exports.start(project_id, pieces)
    first = await anext(stream)
    stream.put_back(first)
    return ExportResponse(
        stream,
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{filename}"',
            "Cache-Control": "no-store",
        },
    )
