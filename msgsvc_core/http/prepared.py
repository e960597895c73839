"""Long texts that stay the same while the process runs: made on the first request, compressed, and
not sent again to a client that has them."""

import gzip
import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property

from starlette.requests import Request
from starlette.responses import Response


class PreparedText:
    """An endpoint that answers with the text that `make` returns; Starlette calls it in a thread."""

    def __init__(
        self, make: Callable[[], str], media_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._make = make
        self._media_type = media_type
        self._headers = headers or {}

    @cached_property
    def _body(self) -> bytes:
        return self._make().encode()

    # A tenth of the text; a proxy that compresses leaves it alone.
    @cached_property
    def _compressed(self) -> bytes:
        return gzip.compress(self._body)

    @cached_property
    def _etag(self) -> str:
        # Weak, as it names the text in both encodings (RFC 9110, section 8.8.1).
        return f'W/"{hashlib.sha256(self._body).hexdigest()[:32]}"'

    def answer(self, request: Request) -> Response:
        headers = {
            **self._headers,
            "ETag": self._etag,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
        }
        if {self._etag, "*"} & _listed(request.headers.get("if-none-match", "")).keys():
            return Response(status_code=304, headers=headers)
        if _listed(request.headers.get("accept-encoding", "")).get("gzip", 0.0) > 0:
            headers["Content-Encoding"] = "gzip"
            return Response(self._compressed, headers=headers, media_type=self._media_type)
        return Response(self._body, headers=headers, media_type=self._media_type)


def _listed(header: str) -> dict[str, float]:
    """The entries of a header that is a list, with their weight: `gzip;q=0` is one that is not wanted."""
    found = {}
    for each in header.split(","):
        entry, _, weight = each.partition(";")
        try:
            found[entry.strip()] = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            found[entry.strip()] = 0.0
    return found
