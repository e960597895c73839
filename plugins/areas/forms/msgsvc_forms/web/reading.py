"""Parses submitted values: JSON, or the two encodings of HTML forms."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from msgsvc_core.api.body import read_body
from msgsvc_core.api.json_input import parse_json
from msgsvc_core.kernel.errors import BadRequest, ValidationFailed
from msgsvc_core.pages import check_text, file_name, posted_parts, urlencoded_pairs
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

#: Maximum bytes of a value other than a file: a text of 4,000 characters, with room for reporting one that
#: is too long.
MOST_VALUE_BYTES = 64 * 1024


def kind_of(request: Request) -> str:
    """The content type that was declared."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def wants_page(request: Request) -> bool:
    """Whether the client is a browser that shows the response, rather than a program."""
    return kind_of(request) != JSON and "text/html" in request.headers.get("accept", "")


@asynccontextmanager
async def reading(request: Request, max_text_bytes: int, max_bytes: int) -> AsyncIterator[Posted]:
    """The posted values; files are deleted after the response.

    `max_text_bytes` limits a body without files, `max_bytes` one with files. Raises `BadRequest`,
    `ValidationFailed` and `PayloadTooLarge`.
    """
    kind = kind_of(request)
    if kind == MULTIPART:
        async with posted_parts(
            request,
            max_bytes=max_bytes,
            max_files=MOST_FIELDS * MOST_FILES,
            max_values=MOST_VALUES,
            max_value_bytes=MOST_VALUE_BYTES,
        ) as form:
            yield _posted(form)
        return
    if kind not in {JSON, URLENCODED}:
        raise BadRequest(
            "must be {first}, {second} or {third}",
            field="Content-Type",
            first=JSON,
            second=URLENCODED,
            third=MULTIPART,
        )
    raw = await read_body(request, max_text_bytes)
    yield _json(raw) if kind == JSON else await _urlencoded(raw)


def _json(raw: bytes) -> Posted:
    value = parse_json(raw)
    if not isinstance(value, dict):
        raise ValidationFailed("must be a JSON object", field="body")
    return Posted(value, is_json=True)


async def _urlencoded(raw: bytes) -> Posted:
    values: dict[str, list[str]] = {}
    for name, text in await urlencoded_pairs(raw, max_values=MOST_VALUES):
        values.setdefault(name, []).append(text)
    return Posted(values)


def _posted(form: FormData) -> Posted:
    values: dict[str, list[str]] = {}
    files: dict[str, list[PostedFile]] = {}
    for name, value in form.multi_items():
        check_text(name)
        if not isinstance(value, UploadFile):
            check_text(value)
            values.setdefault(name, []).append(value)
            continue
        chosen = files.setdefault(name, [])
        # A field in which no file was chosen is sent all the same.
        if value.filename or value.size:
            chosen.append(PostedFile(value.file, file_name(value.filename), value.size or 0))
    return Posted(values, files)
