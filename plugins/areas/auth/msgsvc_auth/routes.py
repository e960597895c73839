"""/v1/auth."""

from msgsvc_auth.addressed import AddressedSignIns
from msgsvc_auth.errors import AuthCodeExpired, AuthCodeInvalid, AuthCodeUsed
from msgsvc_auth.guarantees import Guarantees
from msgsvc_auth.links import StaticLinks
from msgsvc_auth.models import (
    CreateSessionBody,
    CreateStaticLinkBody,
    NamedLink,
    SessionAnswer,
    SessionId,
    SessionStatusAnswer,
    StaticLink,
    StaticLinkAnswer,
    StaticLinkList,
    StaticLinkQuery,
    StatusQuery,
    UpdateStaticLinkBody,
    VerifiedSignInAnswer,
    VerifyBody,
)
from msgsvc_auth.payloads import link_payload, session_payload
from msgsvc_auth.service import SignIn
from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.channels.registry import Channels
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import BadRequest, Conflict, InvalidUrl, NotFound, RateLimitProject

router = Router(
    area="auth",
    description="Sign-in through a messenger.",
    group="sign_in",
    key_purpose="sign_in",
)


@router.post("/v1/auth/session", status=201, errors=(InvalidUrl, RateLimitProject), first_call=20)
async def create_session(
    ctx: Context,
    body: CreateSessionBody,
    channels: Channels,
    clock: Clock,
    sign_in: SignIn,
    addressed: AddressedSignIns,
) -> SessionAnswer:
    """Starts a sign-in: returns links and QR codes to the bots, which ask the person.

    With an `address`, the person is asked there at once, and there are no links.

    Poll the status every `interval` seconds, or redirect the person to a link and handle their return
    at `callback_url`. Both ways return the same code.
    """
    payload, links = "", dict[str, str]()
    if body.address is None:
        new = await sign_in.open(ctx.tx, ctx.project_id, body)
        payload, links = session_payload(new.token), sign_in.links(new)
    else:
        new = await addressed.open(ctx.tx, ctx.project_id, body)
    return SessionAnswer(
        session_id=new.session.session_id,
        links=links,
        qr=channels.qr_links(links, ctx.project_id, payload),
        start_messages=channels.start_messages(ctx.project_id, payload, links) or None,
        match_number=new.session.match_number,
        expires_in=new.session.expires_in_s(clock.now_ms()),
    )


@router.get("/v1/auth/session/{session_id}/status", errors=(NotFound,), holds_connection=False)
async def get_session_status(
    ctx: Context, session_id: SessionId, query: StatusQuery, clock: Clock, sign_in: SignIn
) -> SessionStatusAnswer:
    """Shows the status of a sign-in, and its code once the person confirmed.

    The code stays the same until it is exchanged, so a lost response can be requested again. With
    `wait`, the response is held until the person decides, for at most that many seconds.
    """
    session = await sign_in.get_for_site(ctx.project_id, session_id, query.wait)
    now_ms = clock.now_ms()
    return SessionStatusAnswer(
        session_id=session.session_id,
        status=session.status(now_ms),
        state=session.state,
        code=sign_in.code_of(session, now_ms),
        expires_in=session.expires_in_s(now_ms),
    )


@router.post(
    "/v1/auth/verify",
    errors=(AuthCodeInvalid, AuthCodeExpired, AuthCodeUsed),
    batched_transaction=True,
)
async def verify(ctx: Context, body: VerifyBody, sign_in: SignIn) -> VerifiedSignInAnswer:
    """Exchanges a code for the person who signed in. Works once; call it from your server."""
    session, subscriber = await sign_in.verify(
        ctx.project_id, body.code, ctx.optional_tx, must_prove=body.must_prove
    )
    return VerifiedSignInAnswer.of(session, subscriber)


@router.get("/v1/auth/links", errors=(BadRequest,))
async def list_auth_links(
    ctx: Context, query: StaticLinkQuery, static_links: StaticLinks, channels: Channels
) -> StaticLinkList:
    """Lists the project's static sign-in links, newest first."""
    found = await static_links.page(ctx.tx, ctx.project_id, query)
    page, following = query.cut(found, lambda link: link.link_id)
    return StaticLinkList(
        data=[_link_answer(ctx.project_id, channels, link) for link in page],
        next_cursor=following,
    )


@router.post(
    "/v1/auth/links",
    status=201,
    errors=(Conflict, InvalidUrl),
    audited=lambda _: _("Sign-in link created"),
)
async def create_auth_link(
    ctx: Context, body: CreateStaticLinkBody, static_links: StaticLinks, channels: Channels
) -> StaticLinkAnswer:
    """Creates a permanent sign-in link, for a page or in print."""
    return _link_answer(
        ctx.project_id, channels, await static_links.create(ctx.tx, ctx.project_id, body)
    )


@router.get("/v1/auth/links/{key}", errors=(NotFound,))
async def get_auth_link(
    ctx: Context, key: NamedLink, static_links: StaticLinks, channels: Channels
) -> StaticLinkAnswer:
    """Shows one static sign-in link."""
    return _link_answer(
        ctx.project_id, channels, await static_links.get(ctx.tx, ctx.project_id, key)
    )


@router.patch(
    "/v1/auth/links/{key}",
    errors=(NotFound, InvalidUrl),
    audited=lambda _: _("Sign-in link changed"),
)
async def update_auth_link(
    ctx: Context,
    key: NamedLink,
    body: UpdateStaticLinkBody,
    static_links: StaticLinks,
    channels: Channels,
) -> StaticLinkAnswer:
    """Changes a static sign-in link; omitted fields stay unchanged. Its `slug` can't be changed."""
    changed = await static_links.change(ctx.tx, ctx.project_id, key, body)
    return _link_answer(ctx.project_id, channels, changed)


@router.delete(
    "/v1/auth/links/{key}",
    status=204,
    errors=(NotFound,),
    audited=lambda _: _("Sign-in link deleted"),
)
async def delete_auth_link(ctx: Context, key: NamedLink, static_links: StaticLinks) -> None:
    """Deletes a static sign-in link, which is no longer valid."""
    await static_links.delete(ctx.tx, ctx.project_id, key)


def _link_answer(project_id: str, channels: Channels, link: StaticLink) -> StaticLinkAnswer:
    payload = link_payload(link.slug)
    links = Guarantees(channels).links_of_page(project_id, payload, None, link.must_prove)
    return StaticLinkAnswer(
        slug=link.slug,
        name=link.name,
        callback_url=link.callback_url,
        number_matching=link.number_matching,
        must_prove=list(link.must_prove),
        links=links,
        qr=channels.qr_links(links, project_id, payload),
        start_messages=channels.start_messages(project_id, payload, links, lasting=True) or None,
        created_at=to_rfc3339(link.created_at_ms),
    )
