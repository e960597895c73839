"""Pages of submissions: list, one submission, spam, export."""

from typing import Any

from msgsvc_core.api.exports import Exports
from msgsvc_core.api.validation import validate
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import Download, ListWalk, PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.files import StoredFile
from msgsvc_core.files.service import Files
from msgsvc_core.kernel.errors import Forbidden
from msgsvc_forms.dashboard.area import pages
from msgsvc_forms.dashboard.wording import Wording
from msgsvc_forms.export import to_csv
from msgsvc_forms.models import Form, SubmissionFilters, SubmissionQuery
from msgsvc_forms.service import Forms
from msgsvc_forms.submissions import Submissions
from msgsvc_forms.summary import files_of

#: Answers that the list shows of each submission.
SHOWN_ANSWERS = 3


@pages.get("/forms/{form_id}", access="project:read")
async def submissions(
    page: PageContext, settings: Settings, forms: Forms, all_submissions: Submissions
) -> Render:
    """Submissions of a form, newest or oldest first; spam with `spam=1`."""
    form = await forms.get(page.tx, page.project_id, page.params["form_id"])
    query = validate(
        SubmissionQuery,
        {
            "spam": _is_spam(page),
            "source": page.query.get("source") or None,
            "cursor": page.query.get("cursor") or None,
        },
    )
    filters = SubmissionFilters(spam=query.spam, source=query.source)
    walk = ListWalk(page, f"/forms/{form.form_id}", ("spam", "source"))
    found = await all_submissions.page(
        page.tx,
        page.project_id,
        form.form_id,
        filters,
        query.after,
        query.fetch_limit,
        ascending=walk.ascending,
    )
    values = {
        "form": form,
        "definition": form.definition,
        "rows": walk.cut(found, query.limit, lambda row: row.submission_id),
        "walk": walk,
        "spam": query.spam,
        "source": query.source or "",
        "shown_answers": SHOWN_ANSWERS,
        "say": Wording(page, settings.default_lang),
        "may_export": _may_export(page),
    }
    return Render("submissions.html", values)


@pages.get("/forms/{form_id}/submissions/{submission_id}", access="project:read")
async def submission(
    page: PageContext,
    settings: Settings,
    all_files: Files,
    forms: Forms,
    all_submissions: Submissions,
) -> Render:
    """One submission, with the questions of its own version of the form."""
    form = await _form(page, forms)
    row = await all_submissions.get(
        page.tx, page.project_id, form.form_id, page.params["submission_id"]
    )
    version = await forms.find_version(page.tx, page.project_id, form.form_id, row.version)
    files = await all_files.get_many(page.tx, page.project_id, files_of(row.ordered))
    values = {
        "form": form,
        "definition": (version or form).definition,
        "row": row,
        "results": row.results,
        "files": {
            file.file_id: (file, _address(page, all_files, settings.base_url, file))
            for file in files
        },
        "say": Wording(page, settings.default_lang),
    }
    return Render("submission.html", values)


@pages.get("/forms/{form_id}/export", access="project:read", holds_connection=False)
async def export(
    page: PageContext,
    db: Database,
    forms: Forms,
    all_submissions: Submissions,
    exports: Exports,
) -> Download:
    """All submissions as CSV, if the plan has it. Raises `Forbidden`."""
    form_id = page.params["form_id"]
    async with db.read() as tx:
        await forms.get(tx, page.project_id, form_id)
    if not _may_export(page):
        raise Forbidden(page._("Your plan has no CSV export; a larger plan does."))
    filters = SubmissionFilters(spam=_is_spam(page))
    pieces = to_csv(db, forms, all_submissions, page.project_id, form_id, filters)
    stream = exports.start(page.project_id, pieces)
    return Download(stream, f"submissions-{form_id}.csv")


@pages.post(
    "/forms/{form_id}/submissions/{submission_id}/not-spam",
    access="project:write",
    form_page=submission,
    title=lambda _: _("Submission marked as not spam"),
)
async def not_spam(page: PageContext, forms: Forms, all_submissions: Submissions) -> Redirect:
    """Accepts a submission that was marked as spam, as if it had just been sent."""
    form = await _form(page, forms)
    submission_id = page.params["submission_id"]
    await all_submissions.clear_spam(page.tx, page.project_id, form.form_id, submission_id)
    page.note(form=form.form_id, submission=submission_id)
    notice = page._("Marked as not spam: the submission was accepted and its rules were run.")
    return Redirect(page.url(f"/forms/{form.form_id}/submissions/{submission_id}"), notice=notice)


@pages.post(
    "/forms/{form_id}/spam/empty",
    access="project:write",
    form_page=submissions,
    title=lambda _: _("Spam deleted"),
)
async def empty_spam(page: PageContext, forms: Forms) -> Redirect:
    """Deletes all spam, by a job in steps."""
    form_id = page.params["form_id"]
    await forms.empty_spam(page.tx, page.project_id, form_id)
    page.note(form=form_id)
    notice = page._("The spam is being deleted.")
    return Redirect(page.url(f"/forms/{form_id}", spam="1"), notice=notice)


@pages.post(
    "/forms/{form_id}/submissions/{submission_id}/delete",
    access="project:write",
    title=lambda _: _("Submission deleted"),
)
async def delete_submission(
    page: PageContext, forms: Forms, all_submissions: Submissions
) -> Redirect:
    form = await _form(page, forms)
    submission_id = page.params["submission_id"]
    await all_submissions.delete(page.tx, page.project_id, form.form_id, submission_id)
    page.note(form=form.form_id, submission=submission_id)
    back: dict[str, Any] = {"spam": "1"} if page.form.text("spam") else {}
    return Redirect(page.url(f"/forms/{form.form_id}", **back), notice=page._("Deleted."))


async def _form(page: PageContext, forms: Forms) -> Form:
    return await forms.get(page.tx, page.project_id, page.params["form_id"])


def _is_spam(page: PageContext) -> bool:
    return page.query.get("spam", "") == "1"


def _may_export(page: PageContext) -> bool:
    return page.plan is None or page.plan.csv_export


def _address(page: PageContext, files: Files, base_url: str, file: StoredFile) -> str:
    """Where this browser reads a file: at the host of the page, which its policy asks for."""
    if not file.is_ready:
        return ""
    url, _expires_s = files.address(file)
    return page.root.removesuffix("/dashboard") + url.removeprefix(base_url)
