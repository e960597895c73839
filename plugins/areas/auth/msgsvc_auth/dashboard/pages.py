"""Pages: sign-in links, the latest sign-ins, and a test sign-in."""

from collections.abc import Sequence
from typing import Any

from msgsvc_auth.callbacks import with_code
from msgsvc_auth.dashboard.labels import TONES, identities, statuses
from msgsvc_auth.guarantees import Guarantees
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.messengers import messenger_name
from msgsvc_auth.models import (
    CreateStaticLinkBody,
    Session,
    StaticLink,
    StaticLinkQuery,
    UpdateStaticLinkBody,
    VerifiedSignInAnswer,
)
from msgsvc_auth.payloads import link_payload, session_payload
from msgsvc_auth.service import SignIn
from msgsvc_auth.settings import AuthSettings
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.validation import validate
from msgsvc_core.channels.registry import Channels
from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import (
    EventChart,
    EventSeries,
    EventTile,
    FirstStep,
    Nav,
    PageContext,
    Pages,
    Redirect,
    Render,
)
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.subscribers.service import Subscribers

pages = Pages(
    "auth",
    package="msgsvc_auth.dashboard",
    tiles=[EventTile(lambda _: _("Sign-ins"), "auth.completed")],
    charts=[
        EventChart(
            "logins",
            lambda _: _("Sign-ins"),
            [EventSeries(lambda _: _("Signed in"), "auth.completed")],
            order=20,
        )
    ],
    first_steps=[
        FirstStep(
            lambda _: _.pgettext("step", "Try the sign-in"),
            lambda _: _("Sign in with a messenger as your users do."),
            event="auth.completed",
            path="/sign-in",
            action=lambda _: _("Try it"),
        )
    ],
)


@pages.get(
    "/sign-in", access="project:read", nav=Nav("Sign-in", icon="lock", group="sign_in", order=10)
)
async def sign_in(
    page: PageContext,
    subscribers: Subscribers,
    static_links: StaticLinks,
    sign_ins: SignIn,
    clock: Clock,
    channels: Channels,
    config: Settings,
    settings: AuthSettings,
) -> Render:
    links = await static_links.page(
        page.tx, page.project_id, StaticLinkQuery(limit=100, cursor=None)
    )
    query = validate(PageQuery, {"limit": 20, "cursor": page.query.get("cursor")})
    found = await sign_ins.page(page.tx, page.project_id, query)
    sessions, following = query.cut(found, lambda each: each.position)
    people = await subscribers.get_many(
        page.tx,
        [(page.project_id, each.subscriber_id) for each in sessions if each.subscriber_id],
    )
    now_ms = clock.now_ms()
    values = {
        "links": [(link, _addresses(channels, config, link)) for link in links],
        "sessions": [
            (
                each,
                each.status(now_ms),
                people.get((page.project_id, each.subscriber_id or "")),
            )
            for each in sessions
        ],
        "older": following and page.url("/sign-in", cursor=following),
        "statuses": statuses(page._),
        "tones": TONES,
        "settings": settings,
    }
    return Render("sign_in.html", values)


@pages.get("/sign-in/links/new", access="project:write")
async def new_link(page: PageContext) -> Render:
    return Render("link.html", {"link": None, "addresses": None, **_proofs(page, ())})


@pages.post(
    "/sign-in/links/new",
    access="project:write",
    form_page=new_link,
    title=lambda _: _("Sign-in link created"),
)
async def create_link(page: PageContext, static_links: StaticLinks) -> Redirect:
    typed = {**_typed(page), "slug": page.form.text("slug").strip()}
    link = await static_links.create(
        page.tx, page.project_id, validate(CreateStaticLinkBody, typed)
    )
    page.note(slug=link.slug)
    return Redirect(
        page.url(f"/sign-in/links/{link.slug}"), page._("Created. Put it on your site.")
    )


@pages.get("/sign-in/links/{slug}", access="project:read")
async def link(
    page: PageContext, static_links: StaticLinks, channels: Channels, config: Settings
) -> Render:
    found = await static_links.get(page.tx, page.project_id, page.params["slug"])
    addresses = _addresses(channels, config, found)
    values = {"link": found, "addresses": addresses, **_proofs(page, found.must_prove)}
    return Render("link.html", values)


@pages.post(
    "/sign-in/links/{slug}",
    access="project:write",
    form_page=link,
    title=lambda _: _("Sign-in link changed"),
)
async def change_link(page: PageContext, static_links: StaticLinks) -> Redirect:
    slug = page.params["slug"]
    body = validate(UpdateStaticLinkBody, _typed(page))
    await static_links.change(page.tx, page.project_id, slug, body)
    return Redirect(page.url(f"/sign-in/links/{slug}"), page._("Saved."))


@pages.post(
    "/sign-in/links/{slug}/delete",
    access="project:write",
    title=lambda _: _("Sign-in link deleted"),
)
async def delete_link(page: PageContext, static_links: StaticLinks) -> Redirect:
    await static_links.delete(page.tx, page.project_id, page.params["slug"])
    return Redirect(page.url("/sign-in"), page._("Deleted."))


@pages.post("/sign-in/try", access="project:write", title=lambda _: _("Sign-in tried"))
async def begin_trial(
    page: PageContext, channels: Channels, clock: Clock, settings: AuthSettings, sign_ins: SignIn
) -> Render:
    """Starts a test sign-in, in which the owner acts as the user."""
    channels.check_answers(page.project_id, None)
    new = await sign_ins.open_trial(page.tx, page.project_id)
    payload = session_payload(new.token)
    links = channels.deep_links(page.project_id, payload, asks=True)
    typed = channels.start_messages(page.project_id, payload, links)
    values = {
        **_state(page, new.session, clock.now_ms()),
        "links": [
            (messenger_name(settings, channels, name, page.project_id), url, typed.get(name))
            for name, url in links.items()
        ],
        "qr": list(channels.qr_links(links, page.project_id, payload).values()),
    }
    return Render("trial.html", values)


@pages.get("/sign-in/try/{session_id}", access="project:write")
async def trial(
    page: PageContext, subscribers: Subscribers, clock: Clock, sign_ins: SignIn
) -> Render:
    session = await sign_ins.get_trial(page.tx, page.project_id, page.params["session_id"])
    values: dict[str, Any] = _state(page, session, clock.now_ms())
    if session.subscriber_id is not None and values["status"] in {"confirmed", "consumed"}:
        values["person"] = await subscribers.get(page.tx, page.project_id, session.subscriber_id)
    template = "trial_state.html" if page.fragment == "state" else "trial.html"
    return Render(template, {**values, "links": [], "qr": []})


@pages.post(
    "/sign-in/try/{session_id}",
    access="project:write",
    form_page=trial,
    title=lambda _: _("Code of a trial exchanged"),
)
async def exchange_code(page: PageContext, clock: Clock, sign_ins: SignIn) -> Render:
    """Exchanges the code like the site's server, and shows the response."""
    session = await sign_ins.get_trial(page.tx, page.project_id, page.params["session_id"])
    code = sign_ins.code_of(session, clock.now_ms()) or ""
    session, person = await sign_ins.verify(page.project_id, code, page.tx)
    answer = VerifiedSignInAnswer.of(session, person).model_dump_json(indent=2)
    return Render("exchanged.html", {"answer": answer, "person": person})


def _state(page: PageContext, session: Session, now_ms: int) -> dict[str, Any]:
    return {
        "session": session,
        "status": session.status(now_ms),
        "statuses": statuses(page._),
        "tones": TONES,
        "person": None,
    }


def _addresses(channels: Channels, config: Settings, link: StaticLink) -> dict[str, Any]:
    """Where a link can be put: the hosted page, and the bots themselves."""
    base_url = config.base_url.rstrip("/")
    payload = link_payload(link.slug)
    bots = Guarantees(channels).links_of_page(link.project_id, payload, None, link.must_prove)
    return {
        "page": f"{base_url}/login/{link.slug}",
        "bots": bots,
        "typed": channels.start_messages(link.project_id, payload, bots, lasting=True),
        "callback": with_code(link.callback_url, "CODE", "STATE"),
    }


def _proofs(page: PageContext, known: Sequence[str]) -> dict[str, Any]:
    """What a sign-in may have to prove, and what is ticked."""
    chosen = known if page.error is None else page.form.texts("must_prove")
    return {"identities": identities(page._), "chosen": chosen}


def _typed(page: PageContext) -> dict[str, Any]:
    return {
        "name": page.form.text("name").strip(),
        "callback_url": page.form.text("callback_url").strip(),
        "number_matching": page.form.checked("number_matching"),
        "must_prove": page.form.texts("must_prove"),
    }
