"""Public file URLs, for messengers and other holders of a link."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.files.service import Files
from msgsvc_core.files.streaming import stream


def file_routes(files: Files) -> list[BaseRoute]:
    """GET /files/{file_id}/{signature}."""

    async def signed(request: Request) -> Response:
        file = await files.signed(**request.path_params)
        if file is None:
            # The same response for removed and unknown files.
            raise HTTPException(404)
        return await stream(files, file)

    return [Route("/files/{file_id}/{signature}", signed)]
