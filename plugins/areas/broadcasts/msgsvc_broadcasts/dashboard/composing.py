"""Pages for composing a broadcast: form, audience size, review, start."""

from datetime import datetime
from typing import Any

from msgsvc_broadcasts.models import BroadcastBody
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_core.api.validation import validate
from msgsvc_core.dashboard import PageContext, Pages, PostedForm, Redirect, Render
from msgsvc_core.dashboard.writing import MessageChoices, asked, audience_of, form_of, message_of
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import ApiError, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.time_zones import ms_of
from msgsvc_core.mailings import Audience, MailingMessage
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.messages.previews import Preview
from msgsvc_core.messages.service import Messages
from msgsvc_core.security import SecretBox

_PURPOSE = "broadcast form"


def declare(pages: Pages) -> None:
    """Registers these pages."""
    pages.get("/broadcasts/new", access="project:write")(compose)
    pages.get("/broadcasts/reach", access="project:write")(reach)
    pages.post("/broadcasts/new", access="project:write", read_only=True)(change)
    pages.post("/broadcasts/review", access="project:write", form_page=compose, read_only=True)(
        review
    )
    pages.post("/broadcasts", access="project:write", form_page=compose)(start)


async def compose(page: PageContext, broadcasts: Broadcasts, choices: MessageChoices) -> Render:
    """An empty form, a copy of another broadcast, or the submitted values."""
    given = page.form
    if not given.values and (job_id := page.query.get("like")):
        mailing = await broadcasts.get(page.tx, page.project_id, job_id)
        shown = mailing.shown_audience
        # Whom ids named is not kept, and without them the other filters would reach more people.
        given = form_of(mailing.to_message(), {} if "subscriber_ids_count" in shown else shown)
        if mailing.per_minute:
            given = PostedForm({**given.values, "pace": [str(mailing.per_minute)]})
    return Render("compose.html", {"given": given, "offers": await choices.of(page)})


async def change(page: PageContext, broadcasts: Broadcasts, choices: MessageChoices) -> Render:
    """The form again, from the review."""
    return await compose(page, broadcasts, choices)


async def reach(page: PageContext, mailings: Mailings) -> Render:
    """A fragment: the current size of the audience, and the cost."""
    total, problem = None, None
    try:
        audience = validate(
            Audience, audience_of(asked(page)), "audience", languages=page.languages
        )
        total = await mailings.reach(page.tx, page.project_id, audience)
    except ApiError as error:
        if error.status >= 500:
            raise
        problem = error
    cost = await mailings.cost(page.tx, page.project_id, total or 0)
    return Render("reach.html", {"total": total, "credits": cost, "why": problem})


async def review(
    page: PageContext,
    broadcasts: Broadcasts,
    mailings: Mailings,
    messages: Messages,
    secrets: SecretBox,
) -> Render:
    """The review: the message on each messenger, and the number of recipients."""
    body = _body(page)
    counted = await broadcasts.start(
        page.tx, page.project_id, body.model_copy(update={"dry_run": True})
    )
    return Render(
        "review.html",
        {
            "body": body,
            "audience": body.audience.model_dump(exclude_none=True),
            "total": counted.total,
            "credits": counted.credits,
            "shown": await previews(
                page, mailings, messages, body.to_message(), body.audience.channels
            ),
            "job_id": _offered(page, secrets),
            "typed": _typed(page.form),
        },
    )


async def start(page: PageContext, broadcasts: Broadcasts, secrets: SecretBox) -> Redirect:
    """Sends or schedules it; submitting the same page twice starts one broadcast."""
    job_id = _chosen(page, secrets)
    here = page.url(f"/broadcasts/{job_id}")
    if await broadcasts.is_taken(page.tx, page.project_id, job_id):
        return Redirect(here)
    taken = await broadcasts.start(page.tx, page.project_id, _body(page), job_id)
    page.note(broadcast=taken.job_id, total=taken.total)
    _ = page._
    told = (
        _("The broadcast is being sent.")
        if not page.form.text("send_at")
        else _("The broadcast is scheduled.")
    )
    return Redirect(here, notice=told)


def _offered(page: PageContext, secrets: SecretBox) -> str:
    """An id for the broadcast, and a seal: only of this project, and only one that we made.

    By that of another project's broadcast, which the same account has paid for, it would cost nothing.
    """
    job_id = new_id("job")
    return f"{job_id}.{secrets.sign(_PURPOSE, page.project_id, job_id)}"


def _chosen(page: PageContext, secrets: SecretBox) -> str:
    """Raises `ValidationFailed`."""
    job_id, _, seal = page.form.text("job_id").partition(".")
    if not secrets.verify(seal, _PURPOSE, page.project_id, job_id):
        raise ValidationFailed("review the broadcast again before you send it", field="job_id")
    return job_id


def _body(page: PageContext) -> BroadcastBody:
    """Raises `ValidationFailed`."""
    form = page.form
    given: dict[str, Any] = {**message_of(form), "audience": audience_of(form)}
    if form.text("when") == "later":
        given["send_at"] = _moment(page)
    if form.text("pace").strip():
        given["messages_per_minute"] = form.number("pace")
    return validate(BroadcastBody, given, languages=page.languages)


async def previews(
    page: PageContext,
    mailings: Mailings,
    messages: Messages,
    message: MailingMessage,
    channels: list[str] | None,
) -> list[tuple[str, list[Preview]]]:
    """Previews on each messenger of an audience, for each language with differences.

    Raises what `Mailings.samples` does.
    """
    samples = await mailings.samples(page.tx, page.project_id, message)
    return [
        (", ".join(each.langs), messages.previews(page.project_id, each.message, channels))
        for each in samples
    ]


def _moment(page: PageContext) -> str:
    """A local time of the sender, in the API's format."""
    try:
        local = datetime.fromisoformat(page.form.text("send_at"))
    except ValueError:
        raise ValidationFailed("give day and time", field="send_at") from None
    return to_rfc3339(ms_of(local.replace(tzinfo=None), page.timezone))


def _typed(form: PostedForm) -> list[tuple[str, str]]:
    """All that was filled in, to go along with the last look."""
    aside = {"_csrf", "job_id"}
    return [(name, text) for name in form.values if name not in aside for text in form.texts(name)]
