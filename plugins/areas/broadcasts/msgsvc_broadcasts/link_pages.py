"""GET /l/{token}: where the tracked links of broadcasts lead."""

import re
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from yarl import URL

from msgsvc_broadcasts.links import Links
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import NotFound, RateLimitProject
from msgsvc_core.limits import Limiter
from msgsvc_core.mailings.links import PATH
from msgsvc_core.security.networks import customer_network

#: Links that one network may open in `WINDOW_S` seconds. It bounds load: many people share the address of a
#: mobile provider, and open a broadcast in the same minute.
MOST_OPENED, WINDOW_S = 1200, 60

#: Programs that look at a link to show it, or to check it: the messengers' own above all. Phones of the brand
#: Cubot are none.
_PROGRAMS = re.compile(
    r"(?<!cu)bot\b|crawl|spider|preview|externalhit|vkshare|\bcurl/|\bwget/|python-|go-http-client",
    re.IGNORECASE,
)

#: Headers by which browsers say that they look ahead.
_LOOKING_AHEAD = ("sec-purpose", "purpose", "x-moz")


class LinkPages:
    """The route. Whoever has an address is led to the page, whether it is counted or not."""

    def __init__(self, *, db: Database, limiter: Limiter, links: Links) -> None:
        self._db = db
        self._limiter = limiter
        self._links = links

    def routes(self) -> list[BaseRoute]:
        return [Route(f"{PATH}{{token}}", self.open, methods=["GET"])]

    async def open(self, request: Request) -> Response:
        """Leads on to the link's page, and counts a person's first click."""
        await self._count(request)
        async with self._db.read() as tx:
            try:
                link, token = await self._links.get(tx, request.path_params["token"])
            except NotFound:
                raise HTTPException(HTTPStatus.NOT_FOUND) from None
            is_new = _is_click(request) and not await self._links.is_clicked(
                tx, link, token.subscriber_id
            )
        if is_new:
            async with self._db.transaction() as tx:
                await self._links.click(tx, link, token.subscriber_id)
        headers = {
            "Location": link.url if link.url.isascii() else str(URL(link.url)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Robots-Tag": "noindex",
        }
        return Response(status_code=HTTPStatus.FOUND, headers=headers)

    async def _count(self, request: Request) -> None:
        """Raises `RateLimitProject`."""
        network = customer_network(request.client.host if request.client else "")
        window = await self._limiter.hit(
            f"links:{network}", MOST_OPENED, WINDOW_S, when_away="count_locally"
        )
        if not window.allowed:
            raise RateLimitProject(
                "more than {limit} requests in {seconds} s from one address",
                limit=MOST_OPENED,
                seconds=WINDOW_S,
                retry_after_s=window.retry_after_s,
            )


def _is_click(request: Request) -> bool:
    """Whether a person opened the link, and no program looked at it for them."""
    ahead = " ".join(request.headers.get(name, "") for name in _LOOKING_AHEAD).lower()
    return (
        request.method == "GET"
        and "prefetch" not in ahead
        and "preview" not in ahead
        and not _PROGRAMS.search(request.headers.get("user-agent", ""))
    )
