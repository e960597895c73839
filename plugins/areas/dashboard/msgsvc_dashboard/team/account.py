"""Somebody's own account: name, language, time zone, password, and where they are signed in."""

from zoneinfo import available_timezones

from msgsvc_core.accounts.messengers import MessengerSignIn
from msgsvc_core.accounts.models import Browser, TooMany
from msgsvc_core.accounts.second_factor import SecondFactor
from msgsvc_core.accounts.service import Accounts
from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Moved, Nav, PageContext, Shown
from msgsvc_core.kernel.errors import RateLimitProject, ValidationFailed
from msgsvc_core.pages import known
from msgsvc_core.pages.user_agents import readable_agent
from msgsvc_dashboard.team.declared import ACCOUNT

#: Milliseconds after signing in during which who has no password yet may set one, or another way in.
JUST_NOW_MS = 15 * 60_000


@ACCOUNT.get("", access="self", nav=Nav("Your account", icon="person", group="overview", order=0))
async def account(
    page: PageContext,
    accounts: Accounts,
    messenger_sign_in: MessengerSignIn,
    all_channels: Channels,
    second_factor: SecondFactor,
) -> Shown:
    account_id = page.account.account_id
    sessions = await accounts.sessions_of(page.tx, account_id)
    linked = await messenger_sign_in.linked(page.tx, account_id)
    channels = all_channels
    return Shown(
        "account.html",
        {
            # Its own, as it is now; the page's was read before the change.
            "mine": await accounts.find(page.tx, account_id),
            "sessions": [(each, readable_agent(page._, each.user_agent)) for each in sessions],
            "linked": [(each, channels.display_name(each.bot)) for each in linked],
            "by_messenger": messenger_sign_in.is_on,
            "codes_left": await second_factor.codes_left(page.tx, account_id),
        },
    )


@ACCOUNT.post("/profile", access="self", again=account)
async def change_profile(page: PageContext, accounts: Accounts) -> Moved:
    form = page.form
    timezone = form.text("timezone")
    if timezone not in available_timezones():
        raise ValidationFailed("timezone: is none that we know")
    await accounts.change(
        page.tx,
        page.account.account_id,
        name=form.text("name"),
        lang=known(form.text("lang")),
        timezone=timezone,
    )
    return Moved(page.url("/account"), page._("Saved."))


@ACCOUNT.post("/password", access="self", again=account, holds_connection=False)
async def change_password(page: PageContext) -> Moved:
    """Comparing and hashing takes a while, in which nobody else should wait for the database."""
    service, mine, form = page.service, page.account, page.form
    await check_own(page)
    new = form.text("new_password")
    if new != form.text("new_password_again"):
        raise ValidationFailed(page._("The new passwords differ."))
    hashed = await service.sign_in.hashed(new, mine.email)
    async with service.db.transaction() as tx:
        ended = await service.sign_in.set_password(
            tx, mine.account_id, hashed, session_id=page.session_id
        )
        await service.audit.write(
            tx,
            "account.change_password",
            account_id=mine.account_id,
            detail={"sessions_ended": ended},
            ip=page.ip,
        )
    done = (
        page._("Your password is changed.")
        if mine.has_password
        else page._("Your password is set.")
    )
    return Moved(page.url("/account"), done)


@ACCOUNT.post("/sessions/{session_id}/end", access="self", again=account)
async def end_session(page: PageContext, accounts: Accounts) -> Moved:
    await accounts.end_session(page.tx, page.account.account_id, page.params["session_id"])
    return Moved(page.url("/account") + "#sessions", page._("That browser is signed out."))


@ACCOUNT.post("/sessions/end", access="self", again=account)
async def end_other_sessions(page: PageContext, accounts: Accounts) -> Moved:
    ended = await accounts.end_others(page.tx, page.account.account_id, page.session_id)
    page.note(sessions_ended=ended)
    notice = page._.ngettext(
        "{count} browser is signed out.", "{count} browsers are signed out.", ended
    )
    return Moved(page.url("/account") + "#sessions", notice)


async def check_own(page: PageContext) -> None:
    """Raises unless it is the owner: by the password, by a code where there is none, and where there is
    neither by having signed in just now."""
    if page.account.has_password:
        await check_own_password(page)
    elif page.account.has_totp:
        await check_own_code(page)
    else:
        await _check_signed_in_just_now(page)


async def _check_signed_in_just_now(page: PageContext) -> None:
    service = page.service
    async with service.db.read() as tx:
        sessions = await service.accounts.sessions_of(tx, page.account.account_id)
    after_ms = service.clock.now_ms() - JUST_NOW_MS
    if not any(
        each.session_id == page.session_id and each.created_at_ms > after_ms for each in sessions
    ):
        raise ValidationFailed(
            page._("Sign in again first: you have no password that could be asked for.")
        )


async def check_own_password(page: PageContext) -> None:
    """Raises for a wrong one in the field `password`: a browser left open is not its owner."""
    fits = await page.service.sign_in.check_own(
        page.account.account_id, page.form.text("password"), Browser(page.ip, "")
    )
    _refuse_unless(page, fits, page._("Your password is wrong."))


async def check_own_code(page: PageContext) -> None:
    """The same for who has no password, of a code of the second factor in the field `code`."""
    fits = await page.service.sign_in.check_own_code(
        page.account.account_id, page.form.text("code"), Browser(page.ip, "")
    )
    _refuse_unless(page, fits, page._("The code is wrong, or was used."))


def _refuse_unless(page: PageContext, fits: TooMany | bool, refusal: str) -> None:
    if isinstance(fits, TooMany):
        raise RateLimitProject(page._("Too many tries."), retry_after_s=fits.retry_after_s)
    if not fits:
        raise ValidationFailed(refusal)
