"""The service below a path of its host: `base_url = "https://shop.example/notify"`.

Some proxies pass the path on, others strip it. The application sees one form in both cases: `root_path` is
the path, and `path` begins with it. Addresses in pages, redirects and cookies begin with `root_path`.
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send


class BasePath:
    """Pure ASGI middleware, the outermost; without a path in `base_url` it isn't needed."""

    def __init__(self, app: ASGIApp, path: str, own_paths: Iterable[str]) -> None:
        self._app = app
        self._path = path
        #: Whether paths of the service's own begin so: then it can't tell whether a proxy stripped the path.
        self.is_ambiguous = _first(path) in set(map(_first, own_paths))
        self._raw_path = path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Another application that has mounted this one below the path has set it.
        if scope["type"] == "http" and not scope.get("root_path", "").endswith(self._path):
            scope = self._below(scope)
        await self._app(scope, receive, send)

    def _below(self, scope: Scope) -> Scope:
        path: str = scope["path"]
        outer = scope.get("root_path", "")
        found: dict[str, object] = {"root_path": outer + self._path}
        within = path.removeprefix(outer)
        if not f"{within}/".startswith(f"{self._path}/"):
            found["path"] = f"{outer}{self._path}{within}"
            if (raw := scope.get("raw_path")) is not None:
                found["raw_path"] = (
                    outer.encode() + self._raw_path + raw.removeprefix(outer.encode())
                )
        elif within == self._path:
            found["path"] = f"{path}/"
        return {**scope, **found}


def _first(path: str) -> str:
    return path.split("/")[1]


def base_path(base_url: str) -> str:
    """The path of `base_url`, `""` if it has none."""
    return urlsplit(base_url).path.rstrip("/")


def path_within(scope: Scope) -> str:
    """The path inside this application, which may be below a path of its host or mounted by another."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path
