"""Nothing reads a compressed body as if it were not: programs get 415, and what is taken instead."""

import gzip
from collections.abc import Iterator
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from tests.hostile.asking import FORM, Stranger
from tests.hostile.entry_points import public_pages
from tests.hostile.place import Place, furnish

GZIP = [(b"content-encoding", b"GZip")]
JSON = b"application/json"
MULTIPART = b"multipart/form-data; boundary=a"

#: What programs send bodies to; the others are pages.
OF_PROGRAMS = ("/v1/", "/hooks/", "/compat/", "/f/{form_id}", "/oidc/{project_id}/token")


class _Reads:
    """Notes whether the application asked for the body of a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.any = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.any = False

        async def noted() -> Message:
            self.any = True
            return await receive()

        await self._app(scope, noted, send)


def _paths(service: Service) -> Iterator[tuple[str, str]]:
    for endpoint in service.endpoints:
        if endpoint.body is not None or endpoint.takes_upload:
            yield endpoint.method, endpoint.path
    for page in public_pages(service):
        yield from ((method, page.path) for method in page.methods - {"GET"})


def _refused(path: str, kind: bytes) -> int | None:
    """The status that a program gets; None for a page, which may answer earlier for another reason."""
    if not path.startswith(OF_PROGRAMS):
        return None
    return 415 if not path.startswith("/compat/") or kind == JSON else 400


async def test_no_compressed_body_is_read(make_service: ServiceFactory, make_tenant: Any) -> None:
    place: Place = await furnish(make_service, make_tenant)
    reads = _Reads(place.service.app)
    bearer = {"authorization": f"Bearer {place.tenant.key}"}
    stranger = Stranger(reads)
    customer = Stranger(reads, headers=bearer)
    odd = []
    for method, path in _paths(place.service):
        for kind in (FORM, MULTIPART, JSON):
            client = customer if path.startswith("/v1/") else stranger
            reply = await client.ask(
                method,
                place.path(path),
                body=gzip.compress(b"{}"),
                content_type=kind,
                headers=GZIP,
            )
            refused = _refused(path, kind)
            wrong = refused is not None and reply.status != refused
            silent = refused == 415 and reply.headers.get("accept-encoding") != "identity"
            if reads.any or wrong or silent:
                odd.append((method, path, kind, reply))

    assert odd == []
