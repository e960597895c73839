"""/v1/otp."""

from msgsvc_core.api.context import Context
from msgsvc_core.api.endpoint import Router
from msgsvc_core.channels.registry import Channels
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import (
    ApiError,
    BillingBlocked,
    Conflict,
    InvalidExternalId,
    InvalidUrl,
    MutuallyExclusiveIdentifiers,
    NotFound,
    SubscriberNotFound,
    TooEarly,
)
from msgsvc_otp.errors import OtpExpired, OtpInvalid, OtpMaxAttempts, OtpRateLimited
from msgsvc_otp.hosted.service import CodePages
from msgsvc_otp.models import (
    OtpAnswer,
    OtpId,
    RequestedOtpAnswer,
    RequestOtpBody,
    SendOtpBody,
    SentOtpAnswer,
    TakeOtpResultBody,
    VerifiedOtpAnswer,
    VerifyOtpBody,
)
from msgsvc_otp.payloads import request_payload
from msgsvc_otp.service import OneTimeCodes

router = Router(area="otp", description="One-time codes.", group="sign_in", key_purpose="sign_in")

#: What names no subscriber.
_WHO: tuple[type[ApiError], ...] = (
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
)


@router.post(
    "/v1/otp/send",
    status=202,
    errors=(*_WHO, InvalidUrl, BillingBlocked, Conflict, NotFound, TooEarly, OtpRateLimited),
    first_call=30,
)
async def send_otp(
    ctx: Context, body: SendOtpBody, one_time_codes: OneTimeCodes, pages: CodePages
) -> SentOtpAnswer:
    """Sends a code to a subscriber, or to an address; it replaces the previous one of the same purpose.

    The text is that of your template `otp_<purpose>` or `otp`, if you have one, with the variables
    `code`, `minutes`, `project` and `purpose`.

    With `route_id` the same code goes to the first channel of the route that reaches the person. It goes
    to the next one at once if that fails, or once `within_seconds` of the step are over without the code.

    With `return_url` you need no form of your own: send the browser to `url`, remember `otp_id` in the
    person's session, and exchange the `result` that comes back with `POST /v1/otp/result`.
    """
    if body.return_url is not None:
        pages.check_return_url(body.return_url)
    code = await one_time_codes.send(ctx.tx, ctx.project_id, body)
    url = None
    if body.return_url is not None:
        url = await pages.create(ctx.tx, code, body.return_url)
    return SentOtpAnswer(
        otp_id=code.otp_id,
        expires_at=to_rfc3339(code.expires_at_ms),
        url=url,
        route_id=code.route_id,
    )


@router.post("/v1/otp/result", errors=(OtpInvalid,))
async def take_otp_result(
    ctx: Context, body: TakeOtpResultBody, pages: CodePages
) -> VerifiedOtpAnswer:
    """Exchanges the result of a hosted page for the person who entered the code; works once.

    Compare `otp_id` with that in the person's session at your site: it is the one that
    `POST /v1/otp/send` returned, also if the page sent further codes.
    """
    otp_id, verdict = await pages.take(ctx.tx, ctx.project_id, body.result)
    return VerifiedOtpAnswer.of(verdict, otp_id)


@router.post("/v1/otp/request", status=201, errors=(BillingBlocked,))
async def request_otp(
    ctx: Context, body: RequestOtpBody, all_channels: Channels, one_time_codes: OneTimeCodes
) -> RequestedOtpAnswer:
    """Creates a link that subscribes the first person to open it, and sends them a code.

    The code's lifetime starts when the link is opened. Verify by `otp_id`; the response says who it was.
    """
    if body.channel is not None:
        all_channels.check_name(ctx.project_id, body.channel)
    request, token = await one_time_codes.request(ctx.tx, ctx.project_id, body)
    channels, payload = all_channels, request_payload(token)
    names = None if body.channel is None else [body.channel]
    links = channels.deep_links(ctx.project_id, payload, names)
    await channels.remember_start(ctx.tx, ctx.project_id, payload, request.expires_at_ms)
    return RequestedOtpAnswer(
        otp_id=request.otp_id,
        links=links,
        qr=channels.qr_links(links, ctx.project_id, payload),
        start_messages=channels.start_messages(ctx.project_id, payload, links) or None,
        expires_in=(request.expires_at_ms - request.created_at_ms) // 1000,
    )


@router.post(
    "/v1/otp/verify",
    errors=(*_WHO, NotFound, OtpInvalid, OtpExpired, OtpMaxAttempts, OtpRateLimited),
)
async def verify_otp(
    ctx: Context, body: VerifyOtpBody, one_time_codes: OneTimeCodes
) -> VerifiedOtpAnswer:
    """Verifies a code. Works once; each wrong code uses up an attempt. Call it from your server."""
    verdict = await one_time_codes.verify(ctx.tx, ctx.project_id, body)
    if isinstance(verdict, OtpInvalid):
        # The attempt stays counted: the error keeps its writes.
        raise verdict
    return VerifiedOtpAnswer.of(verdict)


@router.get("/v1/otp/{otp_id}", errors=(NotFound,))
async def get_otp(
    ctx: Context, otp_id: OtpId, clock: Clock, one_time_codes: OneTimeCodes
) -> OtpAnswer:
    """Shows the status of a code; never the code."""
    code = await one_time_codes.get(ctx.tx, ctx.project_id, otp_id)
    return OtpAnswer.of(code, clock.now_ms())
