"""/v1/files."""

from msgsvc_core.api import examples
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.api.uploads import Upload
from msgsvc_core.db import Database
from msgsvc_core.files.models import FileAnswer, FileId, FileParts, StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.files.streaming import FILE_TYPES, stream
from msgsvc_core.kernel.errors import Conflict, NotFound

router = Router(
    area="files",
    description="Files for messages, and files that people sent.",
    group="sending",
    key_purpose="send",
)


@router.post("/v1/files", status=201)
async def upload_file(ctx: Context, upload: Upload, parts: FileParts, files: Files) -> FileAnswer:
    """Stores a file, sent as the field `file` of multipart/form-data.

    Its type is detected from its content: an image, a video, or otherwise a document. Beyond the size of its
    type it is refused with 413; an image that is too large for one can be sent as a document, with the part
    `type=document`. Use its `url` as the `media.url` of a message. An unreferenced file is deleted after
    `media.loose_hours`.
    """
    file = await files.add(
        ctx.tx,
        ctx.project_id,
        filename=upload.filename,
        content=upload.file,
        declared_type=parts.type,
        large_images="refused",
    )
    return _answer(files, file)


@router.get("/v1/files/{file_id}", errors=(NotFound,))
async def get_file(ctx: Context, file_id: FileId, files: Files) -> FileAnswer:
    """Shows a file's metadata, also while a received file is `pending`."""
    return _answer(files, await files.get(ctx.tx, ctx.project_id, file_id))


@router.get(
    "/v1/files/{file_id}/content",
    errors=(NotFound, Conflict),
    holds_connection=False,
    media_type="application/octet-stream",
    more_media_types=FILE_TYPES,
    example=examples.FILE,
)
async def get_file_content(ctx: Context, file_id: FileId, files: Files, db: Database) -> Response:
    """Streams a file as a download; 409 while it is not `ready`."""
    file = await files.get(db, ctx.project_id, file_id)
    if not file.is_ready:
        raise Conflict("the file is {status}", status=file.status)
    return await stream(files, file)


def _answer(files: Files, file: StoredFile) -> FileAnswer:
    return FileAnswer.of(file, files.address(file) if file.is_ready else None)
