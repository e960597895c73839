"""Reads forms of HTML that come with files."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from msgsvc_core.kernel.errors import BadRequest, PayloadTooLarge, ValidationFailed


@asynccontextmanager
async def posted_parts(
    request: Request, *, max_bytes: int, max_files: int, max_values: int, max_value_bytes: int
) -> AsyncIterator[FormData]:
    """Parts of a multipart/form-data body; its files are deleted at the end of the block.

    Raises `BadRequest`, and `PayloadTooLarge` as soon as more than `max_bytes` have arrived.
    """
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
        raise BadRequest(f"body: {error.message}") from None
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    except UnicodeError:
        raise BadRequest("body: is not in the charset that it declares") from None
    try:
        yield form
    finally:
        await form.close()


def check_text(text: str) -> None:
    """Raises `ValidationFailed` for half letters: a declared charset may bring them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationFailed("body: a text holds half of a surrogate pair") from None


def file_name(given: str | None) -> str:
    """As it came; a name that is no UTF-8 comes as half letters, which no database takes."""
    return (given or "").encode(errors="replace").decode()


async def _limited(request: Request, limit: int) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise PayloadTooLarge(f"the body is larger than {limit} bytes")
        yield chunk
