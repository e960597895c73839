"""Pages for composing a broadcast: form, preview, audience size, review, start."""

from datetime import datetime
from typing import Any

from msgsvc_broadcasts.dashboard import testing, varying
from msgsvc_broadcasts.dashboard.counting import CountedAudience, count
from msgsvc_broadcasts.drafts import DraftTests
from msgsvc_broadcasts.models import CreateBroadcastBody
from msgsvc_broadcasts.service import Broadcasts
from msgsvc_broadcasts.variants import MAX_VARIANTS
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import PageContext, Pages, PostedForm, Redirect, Render
from msgsvc_core.dashboard.people import search_people
from msgsvc_core.dashboard.previewing import MessagePreviews, TriedMessage
from msgsvc_core.dashboard.writing import (
    MessageChoices,
    MessageForm,
    audience_of,
    audience_values,
    query_form,
)
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import ApiError, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.time_zones import ms_of
from msgsvc_core.mailings import Audience
from msgsvc_core.mailings.service import Mailings
from msgsvc_core.routing import Routes
from msgsvc_core.security import SecretBox
from msgsvc_core.subscribers.service import Subscribers

_PURPOSE = "broadcast form"


def declare(pages: Pages) -> None:
    """Registers these pages."""
    pages.get("/broadcasts/new", access="project:write")(compose)
    pages.get("/broadcasts/reach", access="project:write")(reach)
    pages.post("/broadcasts/new", access="project:write", read_only=True)(change)
    pages.post("/broadcasts/preview", access="project:write", read_only=True)(preview)
    pages.get("/broadcasts/testers", access="project:write")(testers)
    pages.post(
        "/broadcasts/test",
        access="project:write",
        form_page=compose,
        title=lambda _: _("Test of a broadcast sent"),
    )(send_test)
    pages.post("/broadcasts/review", access="project:write", form_page=compose, read_only=True)(
        review
    )
    pages.post(
        "/broadcasts",
        access="project:write",
        form_page=compose,
        title=lambda _: _("Broadcast started"),
    )(start)


async def compose(
    page: PageContext,
    broadcasts: Broadcasts,
    drafts: DraftTests,
    subscribers: Subscribers,
    choices: MessageChoices,
) -> Render:
    """An empty form, a copy of another broadcast, or the submitted values."""
    given = page.form
    if not given.values and (job_id := page.query.get("like")):
        mailing = await broadcasts.get(page.tx, page.project_id, job_id)
        shown = mailing.shown_audience
        # Whom ids named is not kept, and without them the other filters would reach more people.
        audience = {} if "subscriber_ids_count" in shown else shown
        more = {
            "name": mailing.name or "",
            "pace": str(mailing.per_minute or ""),
            "route_id": mailing.route_id or "",
        }
        given = PostedForm(
            {
                **MessageForm.values_of(mailing.to_message()),
                **audience_values(audience),
                **{name: [text] for name, text in more.items() if text},
                **varying.values_of(mailing),
            }
        )
    found = await search_people(page, subscribers, given.text("test_who"))
    return await _form(page, choices, drafts, given, found=found)


async def change(
    page: PageContext,
    broadcasts: Broadcasts,
    drafts: DraftTests,
    subscribers: Subscribers,
    choices: MessageChoices,
) -> Render:
    """The form again: from the review, with who a search found, or with a variant more or less."""
    return await compose(page, broadcasts, drafts, subscribers, choices)


async def preview(
    page: PageContext, previews: MessagePreviews, drafts: DraftTests, choices: MessageChoices
) -> Render:
    """The message on each messenger: as a fragment for htmx, otherwise with the form."""
    tried = await _tried(page, previews)
    if page.fragment:
        return Render("compose_preview.html", {"tried": tried})
    return await _form(page, choices, drafts, page.form, tried=tried)


async def testers(page: PageContext, drafts: DraftTests, subscribers: Subscribers) -> Render:
    """A fragment: who may get a test."""
    given = query_form(page)
    who = given.text("test_who")
    return Render(
        "testers.html",
        {
            **await testing.testers_of(page, drafts, given),
            "found": await search_people(page, subscribers, who),
            "who": who,
        },
    )


async def send_test(page: PageContext, drafts: DraftTests, choices: MessageChoices) -> Render:
    """Sends the draft as it stands to one subscriber; the form stays as it is."""
    draft = varying.message_for_test(page)
    tested = await testing.send(page, drafts, draft)
    if page.fragment:
        return Render("tested.html", {"tested": tested})
    return await _form(page, choices, drafts, page.form, tested=tested)


async def reach(page: PageContext, mailings: Mailings, channels: Channels) -> Render:
    """A fragment: the current size of the audience, who is left out of it, and the cost."""
    form = query_form(page)
    counted: CountedAudience | None = None
    problem: ApiError | None = None
    try:
        audience = validate(Audience, audience_of(form), "audience", languages=page.languages)
        counted = await count(
            page,
            mailings,
            channels,
            audience,
            form.text("permission") or None,
            form.text("route_id") or None,
        )
    except ApiError as error:
        if error.status >= 500:
            raise
        problem = error
    cost = await mailings.cost(page.tx, page.project_id, counted.found.reached if counted else 0)
    return Render("reach.html", {"counted": counted, "credits": cost, "why": problem})


async def review(
    page: PageContext,
    broadcasts: Broadcasts,
    mailings: Mailings,
    previews: MessagePreviews,
    channels: Channels,
    routes: Routes,
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
            "counted": await count(
                page, mailings, channels, body.audience, body.permission, body.route_id
            ),
            "route": None
            if body.route_id is None
            else await routes.get(page.tx, page.project_id, body.route_id),
            "credits": counted.credits,
            "variants": [
                (name, await previews.samples(page, message, body.audience.channels))
                for name, message in zip(
                    body.variant_names or [""], body.to_messages(), strict=True
                )
            ],
            "experiment": varying.experiment_of(body),
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


async def _form(
    page: PageContext,
    choices: MessageChoices,
    drafts: DraftTests,
    given: PostedForm,
    **values: Any,
) -> Render:
    return Render(
        "compose.html",
        {
            "given": given,
            "offers": await choices.of(page),
            "variants": varying.offered(given),
            "waits_s": varying.WAITS_S,
            "most_variants": MAX_VARIANTS,
            "tried": [],
            **await testing.testers_of(page, drafts, given),
            "found": [],
            "who": given.text("test_who"),
            "tested": None,
            **values,
        },
    )


async def _tried(page: PageContext, previews: MessagePreviews) -> list[tuple[str, TriedMessage]]:
    """Each variant of the form by its name, and one message by none; those that are not written yet are left
    out."""
    form = page.form
    channels = form.texts("channels") if form.text("to") == "some" else []
    names = [name for _, name in varying.offered(form)]
    return [
        (
            name if len(names) > 1 else "",
            await previews.tried(page, written.message(), channels or None),
        )
        for name, written in zip(names, varying.written(form), strict=True)
        if written.is_written
    ]


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


def _body(page: PageContext) -> CreateBroadcastBody:
    """Raises `ValidationFailed`."""
    form = page.form
    given: dict[str, Any] = {**varying.body_of(form), "audience": audience_of(form)}
    if name := form.text("name").strip():
        given["name"] = name
    if route := form.text("route_id"):
        given["route_id"] = route
    if form.text("when") == "later":
        given["send_at"] = _moment(page)
    if form.text("pace").strip():
        given["messages_per_minute"] = form.number("pace")
    return validate(CreateBroadcastBody, given, languages=page.languages)


def _moment(page: PageContext) -> str:
    """A local time of the sender, in the API's format."""
    try:
        local = datetime.fromisoformat(page.form.text("send_at"))
    except ValueError:
        raise ValidationFailed("give day and time", field="send_at") from None
    return to_rfc3339(ms_of(local.replace(tzinfo=None), page.timezone))


def _typed(form: PostedForm) -> list[tuple[str, str]]:
    """All that was filled in, to go along with the last look."""
    aside = {"_csrf", "job_id", "change_variants"}
    return [(name, text) for name in form.values if name not in aside for text in form.texts(name)]
