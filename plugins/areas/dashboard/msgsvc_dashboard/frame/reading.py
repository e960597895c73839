"""Reads submitted forms of the dashboard."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request

from msgsvc_core.api.body import read_body
from msgsvc_core.dashboard import PostedFile, PostedForm
from msgsvc_core.kernel.errors import UnsupportedMediaType, ValidationFailed
from msgsvc_core.pages import check_text, file_name, posted_parts, urlencoded_pairs

#: Values of one form: the builder of forms has the most.
MOST_VALUES = 5000

#: Bytes of a form without files, and of one value of a form with them.
MOST_TEXT_BYTES = 1024 * 1024

#: Files of one form.
MOST_FILES = 20


@asynccontextmanager
async def reading(
    request: Request, upload_bytes: int | None, text_bytes: int = MOST_TEXT_BYTES
) -> AsyncIterator[PostedForm]:
    """The submitted values; their files are deleted after the response.

    `upload_bytes` is the maximum of a body with files; None accepts none. `text_bytes` is that of a body
    without. Raises `BadRequest`, `UnsupportedMediaType`, `ValidationFailed` and `PayloadTooLarge`.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data" and upload_bytes is not None:
        async with posted_parts(
            request,
            max_bytes=upload_bytes,
            max_files=MOST_FILES,
            max_values=MOST_VALUES,
            max_value_bytes=MOST_TEXT_BYTES,
        ) as parts:
            yield _posted(parts)
        return
    if kind not in {"application/x-www-form-urlencoded", ""}:
        raise UnsupportedMediaType("must be that of a form", field="Content-Type")
    raw = await read_body(request, text_bytes)
    values: dict[str, list[str]] = {}
    for name, text in await urlencoded_pairs(raw, max_values=MOST_VALUES):
        values.setdefault(name, []).append(text)
    for name, texts in values.items():
        _check([name, *texts])
    yield PostedForm(values)


def _posted(form: FormData) -> PostedForm:
    values: dict[str, list[str]] = {}
    files: dict[str, list[PostedFile]] = {}
    for name, value in form.multi_items():
        if not isinstance(value, UploadFile):
            _check([name, value])
            values.setdefault(name, []).append(value)
            continue
        _check([name])
        # A field in which no file was chosen is sent all the same.
        if value.filename or value.size:
            kind = value.content_type or "application/octet-stream"
            posted = PostedFile(value.file, file_name(value.filename), kind, value.size or 0)
            files.setdefault(name, []).append(posted)
    return PostedForm(values, files)


def _check(texts: list[str]) -> None:
    """No database takes half letters or NUL."""
    for text in texts:
        check_text(text)
        if "\0" in text:
            raise ValidationFailed("a text holds a NUL", field="body")
