"""Reads HTML forms, with files and without."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote_to_bytes

from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from msgsvc_core.api.body import check_encoding
from msgsvc_core.api.uploads import check_charset
from msgsvc_core.kernel.errors import BadRequest, PayloadTooLarge, ValidationFailed
from msgsvc_core.kernel.storable_text import storable

#: Bytes that are decoded at a time. A megabyte of `%` would keep the event loop for 0.3 s.
PIECE_BYTES = 64 * 1024


@asynccontextmanager
async def posted_parts(
    request: Request, *, max_bytes: int, max_files: int, max_values: int, max_value_bytes: int
) -> AsyncIterator[FormData]:
    """Parts of a multipart/form-data body; its files are deleted at the end of the block.

    Raises `BadRequest`, and `PayloadTooLarge` as soon as more than `max_bytes` have arrived.
    """
    check_charset(request)
    parser = MultiPartParser(
        request.headers,
        _limited(request, max_bytes),
        max_files=max_files,
        max_fields=max_values,
        max_part_size=max_value_bytes,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadRequest(error.message, field="body") from None
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    try:
        yield form
    finally:
        await form.close()


async def posted_values(request: Request, *, max_bytes: int, max_values: int) -> FormData:
    """The values of a form without files, in either encoding that browsers use.

    Raises `BadRequest` for what is none, and `PayloadTooLarge` as soon as more than `max_bytes` have arrived.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with posted_parts(
            request,
            max_bytes=max_bytes,
            max_files=0,
            max_values=max_values,
            max_value_bytes=max_bytes,
        ) as form:
            return FormData([(name, storable(str(text))) for name, text in form.multi_items()])
    try:
        body = b"".join([chunk async for chunk in _limited(request, max_bytes)])
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    pairs = await urlencoded_pairs(body, max_values=max_values)
    return FormData([(name, storable(text)) for name, text in pairs])


async def urlencoded_pairs(body: bytes, *, max_values: int) -> list[tuple[str, str]]:
    """The names and values of a body of application/x-www-form-urlencoded, in their order. Others get their
    turn while a large one is decoded. Raises `BadRequest`."""
    try:
        body.decode()
    except UnicodeDecodeError:
        raise _unreadable(max_values) from None
    if body.count(b"&") >= max_values:
        raise _unreadable(max_values)
    found, decoded = [], 0
    for pair in body.split(b"&"):
        if not pair:
            continue
        name, _, value = pair.partition(b"=")
        found.append((await _unquoted(name), await _unquoted(value)))
        decoded += len(pair)
        if decoded > PIECE_BYTES:
            decoded = 0
            await asyncio.sleep(0)
    return found


async def _unquoted(text: bytes) -> str:
    """What browsers escaped. Escapes that are no UTF-8 are replaced."""
    text = text.replace(b"+", b" ")
    if len(text) <= PIECE_BYTES or b"%" not in text:
        return unquote_to_bytes(text).decode(errors="replace")
    pieces, at = [], 0
    while at < len(text):
        end = at + PIECE_BYTES
        # An escape is not cut in two.
        cut = text.rfind(b"%", end - 2, end)
        end = cut if cut >= 0 and end < len(text) else end
        pieces.append(unquote_to_bytes(text[at:end]))
        at = end
        await asyncio.sleep(0)
    return b"".join(pieces).decode(errors="replace")


def _unreadable(max_values: int) -> BadRequest:
    return BadRequest("must be UTF-8, with at most {limit} values", field="body", limit=max_values)


def check_text(text: str) -> None:
    """Raises `ValidationFailed` for unpaired surrogates, which a declared charset may cause."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationFailed("a text holds half of a surrogate pair", field="body") from None


def file_name(given: str | None) -> str:
    """The client's name; if it is not UTF-8, it has unpaired surrogates, which no database stores."""
    return (given or "").encode(errors="replace").decode()


async def _limited(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    check_encoding(request)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise PayloadTooLarge("the body is larger than {limit} bytes", limit=limit)
        yield chunk
