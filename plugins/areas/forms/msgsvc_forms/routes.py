"""/v1/forms."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.csv_response import csv_response
from msgsvc_core.api.endpoint import Response, Router
from msgsvc_core.api.exports import Exports
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.billing import BillingGate
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import (
    BadRequest,
    Conflict,
    InvalidExternalId,
    NotFound,
    SubscriberNotFound,
)
from msgsvc_forms.export import EXAMPLE, to_csv
from msgsvc_forms.models import (
    CreateFormBody,
    FormAnswer,
    FormId,
    FormList,
    SubmissionAnswer,
    SubmissionFilters,
    SubmissionId,
    SubmissionList,
    SubmissionQuery,
    UpdateFormBody,
)
from msgsvc_forms.service import Forms
from msgsvc_forms.sharing import Sharing
from msgsvc_forms.submissions import Submissions

router = Router(
    area="forms",
    description="Forms that are filled in on a web site or in the chat, and their submissions.",
    group="intake",
)

#: A rule that leads to nobody.
_TO_NOBODY = (InvalidExternalId, SubscriberNotFound)


@router.post(
    "/v1/forms",
    status=201,
    errors=(Conflict, *_TO_NOBODY),
    shows_secrets=False,
    audited=lambda _: _("Form created"),
)
async def create_form(
    ctx: Context, body: CreateFormBody, forms: Forms, sharing: Sharing
) -> FormAnswer:
    """Creates a form, for web pages and the messenger."""
    return sharing.shown(await forms.create(ctx.tx, ctx.project_id, body))


@router.get("/v1/forms", errors=(BadRequest,))
async def list_forms(ctx: Context, query: PageQuery, forms: Forms, sharing: Sharing) -> FormList:
    """Lists the project's forms, newest first."""
    found = await forms.page(ctx.tx, ctx.project_id, query.begin("frm"), query.fetch_limit)
    page, following = query.cut(found, lambda form: form.form_id)
    return FormList(data=[sharing.shown(form) for form in page], next_cursor=following)


@router.get("/v1/forms/{form_id}", errors=(NotFound,))
async def get_form(ctx: Context, form_id: FormId, forms: Forms, sharing: Sharing) -> FormAnswer:
    """Shows the newest version of a form."""
    return sharing.shown(await forms.get(ctx.tx, ctx.project_id, form_id))


@router.patch(
    "/v1/forms/{form_id}", errors=(NotFound, *_TO_NOBODY), audited=lambda _: _("Form changed")
)
async def update_form(
    ctx: Context, form_id: FormId, body: UpdateFormBody, forms: Forms, sharing: Sharing
) -> FormAnswer:
    """Changes a form; omitted fields stay unchanged. Each change creates a version.

    People who already started, in the messenger or on a page, finish the version they started.
    """
    return sharing.shown(await forms.update(ctx.tx, ctx.project_id, form_id, body))


@router.delete(
    "/v1/forms/{form_id}", status=204, errors=(NotFound,), audited=lambda _: _("Form deleted")
)
async def delete_form(ctx: Context, form_id: FormId, forms: Forms) -> None:
    """Deletes a form with all its submissions, and ends dialogues in progress."""
    await forms.delete(ctx.tx, ctx.project_id, form_id)


@router.get("/v1/forms/{form_id}/submissions", errors=(BadRequest, NotFound))
async def list_form_submissions(
    ctx: Context, form_id: FormId, query: SubmissionQuery, submissions: Submissions
) -> SubmissionList:
    """Lists submissions, newest first. Spam is listed with `spam=true` only."""
    found = await submissions.page(
        ctx.tx,
        ctx.project_id,
        form_id,
        SubmissionFilters(spam=query.spam, source=query.source),
        query.begin("fsb"),
        query.fetch_limit,
    )
    page, following = query.cut(found, lambda row: row.submission_id)
    return SubmissionList(data=[SubmissionAnswer.of(row) for row in page], next_cursor=following)


@router.get(
    "/v1/forms/{form_id}/submissions/export",
    errors=(NotFound,),
    holds_connection=False,
    media_type="text/csv",
    example=EXAMPLE,
)
async def export_form_submissions(
    ctx: Context,
    form_id: FormId,
    query: SubmissionFilters,
    db: Database,
    exports: Exports,
    billing: BillingGate,
    forms: Forms,
    submissions: Submissions,
) -> Response:
    """Streams submissions as CSV, newest first, for a spreadsheet.

    UTF-8 with a byte order mark, commas, lines that end with CR LF. A column for every question, also
    those of earlier versions. A cell that a spreadsheet would take for a formula begins with an
    apostrophe.
    """
    await billing.check_export(ctx.project_id)
    pieces = to_csv(db, forms, submissions, ctx.project_id, form_id, query)
    return await csv_response(exports, ctx.project_id, pieces, f"submissions-{form_id}.csv")


@router.get("/v1/forms/{form_id}/submissions/{submission_id}", errors=(NotFound,))
async def get_form_submission(
    ctx: Context, form_id: FormId, submission_id: SubmissionId, submissions: Submissions
) -> SubmissionAnswer:
    """Shows a submission and the results of its rules."""
    row = await submissions.get(ctx.tx, ctx.project_id, form_id, submission_id)
    return SubmissionAnswer.of(row)


@router.delete("/v1/forms/{form_id}/submissions/{submission_id}", status=204, errors=(NotFound,))
async def delete_form_submission(
    ctx: Context, form_id: FormId, submission_id: SubmissionId, submissions: Submissions
) -> None:
    """Deletes a submission with its files, e.g. for people without a messenger who ask for it."""
    await submissions.delete(ctx.tx, ctx.project_id, form_id, submission_id)
