"""Reads request bodies with a size limit."""

from starlette.requests import Request
from starlette.types import Message

from msgsvc_core.kernel.errors import BadRequest, PayloadTooLarge, UnsupportedMediaType

#: What `Content-Encoding` may be.
_NOT_COMPRESSED = frozenset({b"", b"identity"})


async def read_body(request: Request, max_bytes: int) -> bytes:
    """The whole body.

    Raises `UnsupportedMediaType` if it is compressed, and `PayloadTooLarge` as soon as the limit is known to
    be exceeded.

    The error response is sent while the rest arrives and is discarded. Closing the connection instead would
    reset it, and most clients would never see the response.
    """
    check_encoding(request)
    declared = _header(request, b"content-length")
    # A number with more digits than the limit is too large too, and Python parses only so many.
    if declared.isdigit() and (len(declared) > 18 or int(declared) > max_bytes):
        raise _too_large(max_bytes)
    chunks: list[bytes] = []
    size = 0
    while True:
        message: Message = await request.receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the body ended early")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def check_encoding(request: Request) -> None:
    """Raises `UnsupportedMediaType` for a body that is declared as compressed. The answer names what is taken
    (RFC 9110, section 15.5.16)."""
    if _header(request, b"content-encoding").strip().lower() not in _NOT_COMPRESSED:
        error = UnsupportedMediaType("bodies must not be compressed", field="Content-Encoding")
        error.headers["Accept-Encoding"] = "identity"
        raise error


def check_is_json(declared: str | None) -> None:
    """Raises `BadRequest` for a body that is declared as something other than JSON."""
    if declared is not None and declared.partition(";")[0].strip().lower() != "application/json":
        raise BadRequest("must be application/json", field="Content-Type")


def _header(request: Request, name: bytes) -> bytes:
    """All values of a header. Not Starlette's headers, which decode every name that they pass."""
    return b",".join([value for known, value in request.scope["headers"] if known == name])


def _too_large(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge("the body is larger than {limit} bytes", limit=max_bytes)
