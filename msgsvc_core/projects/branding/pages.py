"""GET /brand/{colour}.css and /brand/{logo_id}, for public pages. Neither changes under its address."""

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from msgsvc_core.db import Database
from msgsvc_core.kernel.ids import is_id
from msgsvc_core.projects.branding import store
from msgsvc_core.projects.branding.colours import shades_of

_COLOUR = re.compile("[0-9a-f]{6}")

#: A browser that opens a logo by itself lets nothing in it run.
_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def branding_routes(db: Database) -> list[BaseRoute]:
    """Everything is public, and the same for everybody."""

    def stylesheet(selector: str, colour: str) -> Response:
        if not _COLOUR.fullmatch(colour):
            raise HTTPException(404)
        css = shades_of(f"#{colour}").css(selector)
        return Response(css, media_type="text/css", headers=_HEADERS)

    async def colours(request: Request) -> Response:
        return stylesheet(":root", request.path_params["colour"])

    async def preview(request: Request) -> Response:
        """For a part of a page that is not branded itself."""
        return stylesheet(".branded", request.path_params["colour"])

    async def logo(request: Request) -> Response:
        logo_id = request.path_params["logo_id"]
        found = None
        if is_id(logo_id, "lgo"):
            async with db.read() as tx:
                found = await store.find_public_logo(tx, logo_id)
        if found is None:
            raise HTTPException(404)
        media_type, content = found
        return Response(content, media_type=media_type, headers=_HEADERS)

    return [
        Route("/brand/preview/{colour}.css", preview),
        Route("/brand/{colour}.css", colours),
        Route("/brand/{logo_id}", logo),
    ]
