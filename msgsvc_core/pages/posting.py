"""Reads HTML forms with files."""

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
        raise BadRequest(error.message, field="body") from None
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    except UnicodeError:
        raise BadRequest("is not in the charset that it declares", field="body") from None
    try:
        yield form
    finally:
        await form.close()


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
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise PayloadTooLarge("the body is larger than {limit} bytes", limit=limit)
        yield chunk
