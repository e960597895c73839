"""/v1/people/imports."""

import asyncio

from msgsvc_core.api.context import Context
from msgsvc_core.api.csv_response import csv_response
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.api.exports import Exports
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.uploads import Upload
from msgsvc_core.db import Database
from msgsvc_core.kernel.csv import lines
from msgsvc_core.kernel.errors import BadRequest, Conflict, NotFound
from msgsvc_core.subscribers.imports.models import (
    ImportId,
    ImportParts,
    PeopleImportAnswer,
    PeopleImportList,
    PreparedImport,
)
from msgsvc_core.subscribers.imports.service import REPORT_COLUMNS, PeopleImports

router = Router(area="subscribers")

EXAMPLE = lines([REPORT_COLUMNS, ("7", "refused", "address: must be an email address")])


async def read_people_file(
    ctx: Context, upload: Upload, parts: ImportParts, imports: PeopleImports
) -> PreparedImport:
    # One byte more shows that it is too large.
    content = await asyncio.to_thread(upload.file.read, imports.most_bytes + 1)
    return await imports.prepare(ctx.project_id, content, parts)


@router.post(
    "/v1/people/imports",
    status=202,
    audited=lambda _: _("Import started"),
    errors=(Conflict,),
    prepare=read_people_file,
)
async def start_people_import(
    ctx: Context, prepared: PreparedImport, imports: PeopleImports
) -> PeopleImportAnswer:
    """Imports people from a CSV file, the part `file` of multipart/form-data. Options are other parts.

    Columns: `address` (an email address, a phone number, or the id of a chat), `external_id`, `channel`,
    `first_name`, `language`, `tags`, `permissions`, `attributes` (JSON), `consent`. People who are known get
    what they lack; whether they are subscribed, their language and permissions stay. The same file again
    changes nothing. The rows are deleted as they are taken in.
    """
    return PeopleImportAnswer.of(await imports.start(ctx.tx, prepared))


@router.get("/v1/people/imports", errors=(BadRequest,))
async def list_people_imports(
    ctx: Context, query: PageQuery, imports: PeopleImports
) -> PeopleImportList:
    """Lists the project's imports, newest first, for `limits.import_days`."""
    found = await imports.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda one: one.import_id)
    return PeopleImportList(
        data=[PeopleImportAnswer.of(one) for one in page], next_cursor=following
    )


@router.get("/v1/people/imports/{import_id}", errors=(NotFound,))
async def get_people_import(
    ctx: Context, import_id: ImportId, imports: PeopleImports
) -> PeopleImportAnswer:
    """Shows the progress of an import."""
    return PeopleImportAnswer.of(await imports.get(ctx.tx, ctx.project_id, import_id))


@router.get(
    "/v1/people/imports/{import_id}/report",
    errors=(NotFound,),
    holds_connection=False,
    media_type="text/csv",
    example=EXAMPLE,
)
async def get_people_import_report(
    ctx: Context, import_id: ImportId, imports: PeopleImports, db: Database, exports: Exports
) -> Response:
    """Streams, as CSV, every row that was rejected or needs your attention, with the reason.

    `line` is that of the file; `outcome` is `refused`, `consent_kept` or `must_start`.
    """
    pieces = imports.report(db, ctx.project_id, import_id)
    return await csv_response(exports, ctx.project_id, pieces, f"{import_id}.csv")


@router.post(
    "/v1/people/imports/{import_id}/cancel", shows_secrets=False, errors=(Conflict, NotFound)
)
async def cancel_people_import(
    ctx: Context, import_id: ImportId, imports: PeopleImports
) -> PeopleImportAnswer:
    """Cancels an import. Imported rows stay; the other rows are deleted."""
    return PeopleImportAnswer.of(await imports.cancel(ctx.tx, ctx.project_id, import_id))
