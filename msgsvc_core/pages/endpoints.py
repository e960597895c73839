"""Endpoints that answer a person in a browser: with a page, also when something is wrong."""

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

Page = Callable[[Request], Awaitable[Response]]


def page_endpoint(page: Page, problem: Callable[[Request, Exception], Response]) -> Page:
    """`page` for a route. What it raises is answered by `problem`, with another page; `problem` logs what is
    no `ApiError`, as `msgsvc_core.api.envelope.api_error` does."""

    @wraps(page)
    async def endpoint(request: Request) -> Response:
        try:
            return await page(request)
        except Exception as error:  # noqa: BLE001 - a person is shown a page; the log has the rest
            return problem(request, error)

    return endpoint


def request_id(request: Request) -> str:
    """What the log calls the request, for whoever is told of an error on our side; empty where requests have
    no ids."""
    found: str = request.scope.get("state", {}).get("request_id", "")
    return found
