"""Reads request bodies with a size limit."""

from starlette.types import Message, Receive

from msgsvc_core.kernel.errors import BadRequest, PayloadTooLarge


async def read_body(receive: Receive, declared: str, max_bytes: int) -> bytes:
    """The whole body; `declared` is the client's Content-Length, if any.

    Raises `PayloadTooLarge` as soon as the limit is known to be exceeded.

    The error response is sent while the rest arrives and is discarded. Closing the connection instead would
    reset it, and most clients would never see the response.
    """
    # A number with more digits than the limit is too large too, and Python parses only so many.
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > max_bytes):
        raise _too_large(max_bytes)
    chunks: list[bytes] = []
    size = 0
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise BadRequest("the body ended early")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > max_bytes:
            raise _too_large(max_bytes)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def check_is_json(declared: str | None) -> None:
    """Raises `BadRequest` for a body that is declared as something other than JSON."""
    if declared is not None and declared.partition(";")[0].strip().lower() != "application/json":
        raise BadRequest("must be application/json", field="Content-Type")


def _too_large(max_bytes: int) -> PayloadTooLarge:
    return PayloadTooLarge("the body is larger than {limit} bytes", limit=max_bytes)
