"""Reads what a request posts: JSON, or the two encodings of HTML forms."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from msgsvc_core.api.body import read_body
from msgsvc_core.api.json_input import parse_json
from msgsvc_core.errors import BadRequest, PayloadTooLarge, ValidationFailed
from msgsvc_forms.definition import MOST_FIELDS
from msgsvc_forms.fields import MOST_FILES
from msgsvc_forms.web.posted import Posted, PostedFile

JSON, URLENCODED, MULTIPART = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
)

#: Values of one form: each field may have as many as there are options.
MOST_VALUES = MOST_FIELDS * 50

#: Bytes of one value that is no file: a text of 4,000 characters, and room to be told that it is too long.
MOST_VALUE_BYTES = 64 * 1024


def kind_of(request: Request) -> str:
    """The content type that was declared."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def wants_page(request: Request) -> bool:
    """Whether a browser shows the answer to a person, rather than a program reading it."""
    return kind_of(request) != JSON and "text/html" in request.headers.get("accept", "")


@asynccontextmanager
async def reading(request: Request, most_text: int, most: int) -> AsyncIterator[Posted]:
    """What was posted; its files are gone when the request is answered.

    `most_text` bounds the bytes of a body without files, `most` of one with them. Raises `BadRequest`,
    `ValidationFailed` and `PayloadTooLarge`.
    """
    kind = kind_of(request)
    if kind == MULTIPART:
        form = await _multipart(request, most)
        try:
            yield _posted(form)
        finally:
            await form.close()
        return
    if kind not in {JSON, URLENCODED}:
        raise BadRequest(f"Content-Type: must be {JSON}, {URLENCODED} or {MULTIPART}")
    declared = request.headers.get("content-length", "0")
    raw = await read_body(request.receive, declared, most_text)
    yield _json(raw) if kind == JSON else _urlencoded(raw)


def _json(raw: bytes) -> Posted:
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise ValidationFailed("body: must be a JSON object")
    return Posted(value, is_json=True)


def _urlencoded(raw: bytes) -> Posted:
    try:
        values = parse_qs(raw.decode(), keep_blank_values=True, max_num_fields=MOST_VALUES)
    except ValueError:
        raise BadRequest(f"body: must be UTF-8, with at most {MOST_VALUES} values") from None
    return Posted(values)


async def _multipart(request: Request, most: int) -> FormData:
    parser = MultiPartParser(
        request.headers,
        _limited(request, most),
        max_files=MOST_FIELDS * MOST_FILES,
        max_fields=MOST_VALUES,
        max_part_size=MOST_VALUE_BYTES,
    )
    try:
        return await parser.parse()
    except MultiPartException as error:
        raise BadRequest(f"body: {error.message}") from None
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    except UnicodeError:
        raise BadRequest("body: is not in the charset that it declares") from None


async def _limited(request: Request, most: int) -> AsyncGenerator[bytes, None]:
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise PayloadTooLarge(f"the body is larger than {most} bytes")
        yield chunk


def _posted(form: FormData) -> Posted:
    values: dict[str, list[str]] = {}
    files: dict[str, list[PostedFile]] = {}
    for name, value in form.multi_items():
        _check_text(name)
        if not isinstance(value, UploadFile):
            _check_text(value)
            values.setdefault(name, []).append(value)
            continue
        chosen = files.setdefault(name, [])
        # A field in which no file was chosen is sent all the same.
        if value.filename or value.size:
            # A name that is no UTF-8 comes as half letters, which no database takes.
            filename = (value.filename or "").encode(errors="replace").decode()
            chosen.append(PostedFile(value.file, filename, value.size or 0))
    return Posted(values, files)


def _check_text(text: str) -> None:
    """Raises `ValidationFailed` for half letters: a declared charset may bring them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValidationFailed("body: a text holds half of a surrogate pair") from None
