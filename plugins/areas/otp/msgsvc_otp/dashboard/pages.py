"""Pages: the latest codes, one code, and a test code."""

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import EventTile, Nav, PageContext, Pages, Redirect, Render
from msgsvc_core.dashboard.people import chosen_person, search_people
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import ApiError
from msgsvc_core.routing.models import read_steps
from msgsvc_core.routing.service import Routes
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_otp.dashboard.labels import TONES, not_delivered, statuses
from msgsvc_otp.events import SENT, VERIFIED
from msgsvc_otp.models import DEFAULT_PURPOSE, OneTimeCode, SendOtpBody, VerifyOtpBody
from msgsvc_otp.service import OneTimeCodes
from msgsvc_otp.settings import OtpSettings

pages = Pages(
    "otp",
    package="msgsvc_otp.dashboard",
    tiles=[EventTile(lambda _: _("Codes entered"), VERIFIED, of=SENT)],
)


@pages.get(
    "/codes",
    access="project:read",
    nav=Nav("One-time codes", icon="number", group="sign_in", order=20),
)
async def codes(
    page: PageContext,
    subscribers: Subscribers,
    clock: Clock,
    one_time_codes: OneTimeCodes,
    settings: OtpSettings,
    routes: Routes,
) -> Render:
    query = validate(PageQuery, {"limit": 50, "cursor": page.query.get("cursor")})
    found = await one_time_codes.page(page.tx, page.project_id, query)
    shown, following = query.cut(found, lambda code: code.otp_id)
    people = await subscribers.get_many(
        page.tx, [(page.project_id, each.subscriber_id) for each in shown if each.subscriber_id]
    )
    now_ms = clock.now_ms()
    recipient = page.form.text("who") or page.query.get("subscriber_id", "")
    values = {
        "codes": [
            (each, each.status(now_ms), people.get((page.project_id, each.subscriber_id or "")))
            for each in shown
        ],
        "older": following and page.url("/codes", cursor=following),
        "statuses": statuses(page._),
        "tones": TONES,
        "settings": settings,
        "purpose": DEFAULT_PURPOSE,
        "recipient": recipient,
        "routes": [
            (each.route_id, each.name) for each in await routes.list_all(page.tx, page.project_id)
        ],
        "found": await search_people(page, subscribers, recipient),
    }
    return Render("codes.html", values)


@pages.get("/codes/recipients", access="project:write")
async def recipients(page: PageContext, subscribers: Subscribers) -> Render:
    """A fragment: who the search for a recipient finds."""
    searched = page.query.get("who", "")
    found = await search_people(page, subscribers, searched)
    return Render("recipients.html", {"name": "who", "searched": searched, "found": found})


@pages.post(
    "/codes", access="project:write", form_page=codes, title=lambda _: _("One-time code sent")
)
async def send_code(page: PageContext, one_time_codes: OneTimeCodes) -> Redirect:
    purpose = page.form.text("purpose").strip()
    asked = {**chosen_person(page.form, "who"), "purpose": purpose}
    if page.form.text("route_id"):
        asked["route_id"] = page.form.text("route_id")
    code = await one_time_codes.send(page.tx, page.project_id, validate(SendOtpBody, asked))
    page.note(otp_id=code.otp_id)
    return Redirect(page.url(f"/codes/{code.otp_id}"), page._("The code is being sent."))


@pages.get("/codes/{otp_id}", access="project:read")
async def code(
    page: PageContext,
    clock: Clock,
    subscribers: Subscribers,
    one_time_codes: OneTimeCodes,
    routes: Routes,
    channels: Channels,
) -> Render:
    found = await one_time_codes.get(page.tx, page.project_id, page.params["otp_id"])
    now_ms = clock.now_ms()
    person = None
    if found.subscriber_id is not None:
        person = await subscribers.get(page.tx, page.project_id, found.subscriber_id)
    values = {
        "code": found,
        "status": found.status(now_ms),
        "live": found.is_live(now_ms),
        "person": person,
        "route": await _route(page, routes, found),
        "step": _step(page, channels, found),
        "not_delivered": not_delivered(page._, found.reason) if found.reason else "",
        "statuses": statuses(page._),
        "tones": TONES,
    }
    return Render("state.html" if page.fragment == "state" else "code.html", values)


@pages.post(
    "/codes/{otp_id}/verify",
    access="project:write",
    form_page=code,
    title=lambda _: _("One-time code verified"),
)
async def verify_code(page: PageContext, one_time_codes: OneTimeCodes) -> Redirect:
    otp_id = page.params["otp_id"]
    body = validate(VerifyOtpBody, {"otp_id": otp_id, "code": page.form.text("code")})
    verdict = await one_time_codes.verify(page.tx, page.project_id, body)
    if isinstance(verdict, ApiError):
        # The wrong guess is counted all the same.
        raise verdict
    return Redirect(
        page.url(f"/codes/{otp_id}"),
        page._("Correct. The code is used and can't be verified again."),
    )


async def _route(page: PageContext, routes: Routes, found: OneTimeCode) -> tuple[str, str] | None:
    """The name and the address of a code's route; None for a code to one channel. A route that has been
    deleted is named by its id, and has no address."""
    if found.route_id is None:
        return None
    key = (page.project_id, found.route_id)
    route = (await routes.find_many(page.tx, [key])).get(key)
    if route is None:
        return found.route_id, ""
    return route.name, page.url(f"/routes/{route.route_id}")


def _step(page: PageContext, channels: Channels, found: OneTimeCode) -> str:
    """By which step of its route a code went last; empty for a code to one channel."""
    if found.steps is None or found.step is None or found.step < 0:
        return ""
    steps = read_steps(found.steps)
    return page._(
        "step {number} of {count}: {channel}",
        number=found.step + 1,
        count=len(steps),
        channel=channels.display_name(steps[found.step].channel, page.project_id),
    )
