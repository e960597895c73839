"""Reads an uploaded file into a temporary file, with a size limit."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import IO

from python_multipart.multipart import parse_options_header
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from msgsvc_core.api.body import check_encoding
from msgsvc_core.api.json_input import is_storable
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.kernel.errors import BadRequest, PayloadTooLarge, ValidationFailed

#: The field of multipart/form-data that holds the file.
UPLOAD_FIELD = "file"

#: Maximum bytes of a request besides the file: boundaries, and the headers of its part.
_FRAME_BYTES = 16 * 1024

#: Maximum bytes of a part other than the file, and of its headers.
_PART_BYTES = 16 * 1024

#: Charsets of a form that are UTF-8.
_UTF8 = frozenset({b"utf-8", b"utf8", b"us-ascii"})

#: Maximum characters of the client's name of the file; a longer one is ignored.
_MAX_NAME = 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file, deleted after the response; `filename` is the client's. `parts` are the texts of the
    other parts, before and after the file."""

    file: IO[bytes]
    filename: str
    parts: Mapping[str, str] = field(default_factory=dict)

    async def fingerprint(self) -> bytes:
        """A digest of all parts and of the file's name, independent of the multipart boundary."""
        self.file.seek(0)
        # The file may be on disk, and reading it would block the event loop.
        digest = await asyncio.to_thread(_digest, self.file)
        # The handler reads it from the beginning.
        self.file.seek(0)
        parts = json.dumps(sorted(self.parts.items())) if self.parts else ""
        return digest + self.filename.encode() + parts.encode()


@asynccontextmanager
async def read_upload(
    request: Request, settings: MediaSettings, most_parts: int = 0
) -> AsyncIterator[Upload]:
    """The only file of the request, and up to `most_parts` other parts; a large file is stored on disk.

    Raises `UnsupportedMediaType` for a compressed body, `BadRequest` for one other than multipart/form-data,
    `ValidationFailed` for no file or several, and `PayloadTooLarge` as soon as the body is known to exceed
    the limit.
    """
    check_encoding(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        raise BadRequest("must be multipart/form-data", field="Content-Type")
    check_charset(request)
    limit = max(settings.max_image_bytes, settings.max_video_bytes, settings.max_document_bytes)
    frame = _FRAME_BYTES + most_parts * 2 * _PART_BYTES
    parser = MultiPartParser(
        request.headers,
        _limited(request, limit + frame, limit),
        max_files=1,
        max_fields=most_parts,
        max_part_size=_PART_BYTES,
    )
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadRequest(error.message, field="body") from None
    except ClientDisconnect:
        raise BadRequest("the body ended early") from None
    try:
        file = form.get(UPLOAD_FIELD)
        parts = {name: text for name, text in form.multi_items() if isinstance(text, str)}
        if not isinstance(file, UploadFile) or len(parts) + 1 != len(form.multi_items()):
            raise ValidationFailed(
                "send one file under this name, and each other part once", field=UPLOAD_FIELD
            )
        for name, text in parts.items():
            if not is_storable(name + text):
                raise ValidationFailed("a text holds NUL or invalid UTF-8", field="body")
        if len(file.filename or "") > _MAX_NAME:
            raise ValidationFailed(
                "its name is longer than {limit} characters", field=UPLOAD_FIELD, limit=_MAX_NAME
            )
        yield Upload(file.file, _storable(file.filename or ""), parts)
    finally:
        await form.close()


def check_charset(request: Request) -> None:
    """Raises `BadRequest` for a multipart body that is declared as something other than UTF-8, which no
    program needs (RFC 7578, section 5.1.2): some of Python's codecs take quadratic time."""
    _, params = parse_options_header(request.headers.get("content-type", ""))
    if params.get(b"charset", b"utf-8").lower() not in _UTF8:
        raise BadRequest("must be UTF-8", field="Content-Type")


async def _limited(request: Request, limit: int, file_limit: int) -> AsyncGenerator[bytes, None]:
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise _too_large(file_limit)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise _too_large(file_limit)
        yield chunk


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        "no file may be larger than {limit} bytes", field=UPLOAD_FIELD, limit=limit
    )


def _storable(name: str) -> str:
    # A name that is not UTF-8 is decoded to unpaired surrogates, which no database stores.
    return name.encode(errors="replace").decode().replace("\0", "")


def _digest(file: IO[bytes]) -> bytes:
    digest = hashlib.sha256()
    while chunk := file.read(256 * 1024):
        digest.update(chunk)
    return digest.digest()
