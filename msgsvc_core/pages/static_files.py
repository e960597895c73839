"""Files of pages, compressed: most of what a first view of a page costs are stylesheets and scripts."""

import gzip
import os
from functools import lru_cache

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.staticfiles import NotModifiedResponse, PathLike, StaticFiles
from starlette.types import Scope

#: Kinds of files that are texts. Others, such as fonts and pictures, are compressed already.
TEXTS = frozenset({".css", ".js", ".svg", ".json"})

#: Files that are kept compressed in memory: more than there are, some 100 kB together.
MOST_KEPT = 256


class CompressedFiles(StaticFiles):
    """Static files, with gzip for who takes it. Each is compressed once; pages themselves are not, since they
    hold secrets beside what a stranger may choose (BREACH)."""

    def file_response(
        self,
        full_path: PathLike,
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        if os.path.splitext(full_path)[1] not in TEXTS:
            return response
        response.headers["Vary"] = "Accept-Encoding"
        request_headers = Headers(scope=scope)
        if (
            isinstance(response, NotModifiedResponse)
            or "range" in request_headers
            or "gzip" not in request_headers.get("accept-encoding", "")
        ):
            return response
        body = _compressed(os.fspath(full_path), stat_result.st_mtime_ns, stat_result.st_size)
        headers = {
            name: response.headers[name]
            for name in ("content-type", "last-modified", "vary")
            if name in response.headers
        }
        headers["Content-Encoding"] = "gzip"
        # Weak: the bytes differ from those without compression.
        headers["ETag"] = f"W/{response.headers['etag']}"
        return Response(b"" if scope["method"] == "HEAD" else body, status_code, headers)


@lru_cache(maxsize=MOST_KEPT)
def _compressed(path: str, _changed_ns: int, _size: int) -> bytes:
    with open(path, "rb") as file:
        return gzip.compress(file.read(), mtime=0)
