"""Reads what a form of the dashboard posts."""

from collections.abc import AsyncGenerator
from urllib.parse import parse_qs

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from msgsvc_core.api.body import read_body
from msgsvc_core.dashboard import PostedFile, PostedForm
from msgsvc_core.errors import BadRequest, PayloadTooLarge, ValidationFailed

#: Values of one form: the builder of forms has the most.
MOST_VALUES = 5000

#: Bytes of a form without files.
MOST_TEXT_BYTES = 1024 * 1024


async def read_form(request: Request, upload_bytes: int | None) -> PostedForm:
    """Raises `BadRequest`, `ValidationFailed` and `PayloadTooLarge`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data" and upload_bytes is not None:
        return await _multipart(request, upload_bytes)
    if kind not in {"application/x-www-form-urlencoded", ""}:
        raise BadRequest("Content-Type: must be that of a form")
    declared = request.headers.get("content-length", "0")
    raw = await read_body(request.receive, declared, MOST_TEXT_BYTES)
    try:
        values = parse_qs(raw.decode(), keep_blank_values=True, max_num_fields=MOST_VALUES)
    except ValueError:
        raise BadRequest(f"body: must be UTF-8, with at most {MOST_VALUES} values") from None
    for name, texts in values.items():
        _check([name, *texts])
    return PostedForm(values)


async def _multipart(request: Request, most: int) -> PostedForm:
    parser = MultiPartParser(
        request.headers,
        _limited(request, most),
        max_files=20,
        max_fields=MOST_VALUES,
        max_part_size=MOST_TEXT_BYTES,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadRequest(f"body: {error.message}") from None
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    except UnicodeError:
        raise BadRequest("body: is not in the charset that it declares") from None
    values: dict[str, list[str]] = {}
    files: dict[str, list[PostedFile]] = {}
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            # A field in which no file was chosen is sent all the same.
            if value.filename or value.size:
                filename = (value.filename or "").encode(errors="replace").decode()
                kind = value.content_type or "application/octet-stream"
                posted = PostedFile(value.file, filename, kind, value.size or 0)
                files.setdefault(name, []).append(posted)
            continue
        _check([name, value])
        values.setdefault(name, []).append(value)
    return PostedForm(values, files)


async def _limited(request: Request, most: int) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise PayloadTooLarge(f"the body is larger than {most} bytes")
        yield chunk


def _check(texts: list[str]) -> None:
    """No database takes NUL or half letters; a declared charset may bring them."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValidationFailed("body: a text holds half of a surrogate pair") from None
        if "\0" in text:
            raise ValidationFailed("body: a text holds a NUL")
