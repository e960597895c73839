"""Pages of canned answers."""

from typing import Any

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_helpdesk.canned_answers.models import CreateCannedAnswerBody, UpdateCannedAnswerBody
from msgsvc_helpdesk.canned_answers.service import CannedAnswers
from msgsvc_helpdesk.dashboard.area import pages


@pages.get("/canned-answers", access="customers:read")
async def canned_answers(page: PageContext, all_canned_answers: CannedAnswers) -> Render:
    answers = all_canned_answers
    query = validate(PageQuery, {"cursor": page.query.get("cursor") or None})
    found = await answers.page(page.tx, page.project_id, query.after, query.fetch_limit)
    shown, following = query.cut(
        [answers.shown(one) for one in found], lambda one: one.canned_answer_id
    )
    return Render("canned_answers.html", {"answers": shown, "next_cursor": following})


@pages.get("/new-canned-answer", access="project:write")
async def new_canned_answer(page: PageContext) -> Render:
    return Render(
        "canned_answer.html", {"answer": None, "texts": dict.fromkeys(page.languages, "")}
    )


@pages.post(
    "/new-canned-answer",
    access="project:write",
    form_page=new_canned_answer,
    title=lambda _: _("Canned answer created"),
)
async def create_canned_answer(page: PageContext, all_canned_answers: CannedAnswers) -> Redirect:
    body = {"key": page.form.text("key").strip(), **_written(page)}
    made = await all_canned_answers.create(
        page.tx, page.project_id, validate(CreateCannedAnswerBody, body, languages=page.languages)
    )
    page.note(key=made.key)
    return Redirect(page.url("/canned-answers"), notice=page._("Saved."))


@pages.get("/canned-answers/{canned_answer}", access="project:write")
async def canned_answer(page: PageContext, all_canned_answers: CannedAnswers) -> Render:
    answers = all_canned_answers
    found = answers.shown(await answers.get(page.tx, page.project_id, page.params["canned_answer"]))
    kept = found.text if isinstance(found.text, dict) else {"en": found.text}
    texts = {**dict.fromkeys(page.languages, ""), **kept}
    return Render("canned_answer.html", {"answer": found, "texts": texts})


@pages.post(
    "/canned-answers/{canned_answer}",
    access="project:write",
    form_page=canned_answer,
    title=lambda _: _("Canned answer changed"),
)
async def change_canned_answer(page: PageContext, all_canned_answers: CannedAnswers) -> Redirect:
    key = page.params["canned_answer"]
    body = validate(UpdateCannedAnswerBody, _written(page), languages=page.languages)
    await all_canned_answers.update(page.tx, page.project_id, key, body)
    page.note(key=key)
    return Redirect(page.url("/canned-answers"), notice=page._("Saved."))


@pages.post(
    "/canned-answers/{canned_answer}/delete",
    access="project:write",
    title=lambda _: _("Canned answer deleted"),
)
async def delete_canned_answer(page: PageContext, all_canned_answers: CannedAnswers) -> Redirect:
    key = page.params["canned_answer"]
    await all_canned_answers.delete(page.tx, page.project_id, key)
    page.note(key=key)
    return Redirect(page.url("/canned-answers"), notice=page._("The canned answer is deleted."))


def _written(page: PageContext) -> dict[str, Any]:
    texts = {lang: page.form.text(f"text_{lang}") for lang in page.languages}
    given = {lang: text for lang, text in texts.items() if text.strip()}
    return {
        "title": page.form.text("title").strip(),
        # None at all is refused as an empty text is, and named by its field.
        "text": given or "",
        "format": page.form.text("format", "plain"),
    }
