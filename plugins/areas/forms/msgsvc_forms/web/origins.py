"""The sites whose pages may submit a form: those of its `allowed_origins`, and this service."""

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from msgsvc_core.kernel.errors import Forbidden
from msgsvc_forms.definition import Definition

#: Seconds for which a browser may remember what it was allowed.
MAX_AGE_S = 600


class Origins:
    """Checks the header `Origin`, which browsers send and pages can't change."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._own = f"{parts.scheme}://{parts.netloc}"

    def check(self, request: Request, definition: Definition) -> None:
        """Raises `Forbidden` for a page of another site. Programs send no origin."""
        origin = request.headers.get("origin")
        if origin is not None and not self._is_allowed(origin, request, definition):
            raise Forbidden(
                "{origin} is not among the form's allowed_origins",
                field="Origin",
                origin=origin[:255],
            )

    def allow(self, request: Request, response: Response, definition: Definition) -> None:
        """Lets the page read the answer, if it may send the form in."""
        response.headers.append("Vary", "Origin")
        origin = request.headers.get("origin")
        if origin is not None and self._is_allowed(origin, request, definition):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = "Retry-After, X-Request-Id"

    def preflight(self, request: Request, definition: Definition) -> Response:
        """The answer to a browser that asks whether it may send JSON."""
        response = Response(status_code=204, headers={"Allow": "GET, HEAD, OPTIONS, POST"})
        self.allow(request, response, definition)
        if "Access-Control-Allow-Origin" in response.headers:
            response.headers["Access-Control-Allow-Methods"] = "GET, POST"
            response.headers["Access-Control-Allow-Headers"] = "Content-Type"
            response.headers["Access-Control-Max-Age"] = str(MAX_AGE_S)
        return response

    def _is_allowed(self, origin: str, request: Request, definition: Definition) -> bool:
        here = f"{request.url.scheme}://{request.url.netloc}"
        known = {self._own, here, *definition.allowed_origins}
        return "*" in known or origin in known
