"""The user's account: name, language, time zone, password, and sessions."""

from zoneinfo import available_timezones

from msgsvc_core.channels.registry import Channels
from msgsvc_core.dashboard import Nav, PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.pages import known
from msgsvc_core.pages.user_agents import readable_agent
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.password_changes import PasswordChanges
from msgsvc_dashboard.accounts.second_factor import SecondFactor
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.frame.gate import account_of
from msgsvc_dashboard.team.declared import ACCOUNT
from msgsvc_dashboard.team.reauthentication import Reauthentication


@ACCOUNT.get(
    "", access="account:self", nav=Nav("Your account", icon="person", group="overview", order=0)
)
async def account(
    page: PageContext,
    accounts: Accounts,
    messenger_sign_in: MessengerSignIn,
    all_channels: Channels,
    second_factor: SecondFactor,
) -> Render:
    account_id = page.viewer.account_id
    sessions = await accounts.sessions_of(page.tx, account_id)
    linked = await messenger_sign_in.linked(page.tx, account_id)
    channels = all_channels
    return Render(
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


@ACCOUNT.post(
    "/profile", access="account:self", form_page=account, title=lambda _: _("Profile changed")
)
async def change_profile(page: PageContext, accounts: Accounts) -> Redirect:
    form = page.form
    timezone = form.text("timezone")
    if timezone not in available_timezones():
        raise ValidationFailed("is none that we know", field="timezone")
    await accounts.change(
        page.tx,
        page.viewer.account_id,
        name=form.text("name"),
        lang=known(form.text("lang")),
        timezone=timezone,
    )
    return Redirect(page.url("/account"), page._("Saved."))


@ACCOUNT.post(
    "/password",
    access="account:self",
    form_page=account,
    holds_connection=False,
    title=lambda _: _("Password changed"),
)
async def change_password(
    page: PageContext,
    passwords: PasswordChanges,
    db: Database,
    audit: Audit,
    owner: Reauthentication,
) -> Redirect:
    """Without a transaction, since verifying and hashing take a while."""
    mine, form = account_of(page), page.form
    await owner.check(page)
    new = form.text("new_password")
    if new != form.text("new_password_again"):
        raise ValidationFailed(page._("The new passwords don't match."))
    hashed = await passwords.hashed(new, mine.email)
    async with db.transaction() as tx:
        ended = await passwords.set_password(
            tx, mine.account_id, hashed, session_id=page.session_id
        )
        await audit.write(
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
    return Redirect(page.url("/account"), done)


@ACCOUNT.post(
    "/sessions/{session_id}/end",
    access="account:self",
    form_page=account,
    title=lambda _: _("Session signed out"),
)
async def end_session(page: PageContext, accounts: Accounts) -> Redirect:
    await accounts.end_session(page.tx, page.viewer.account_id, page.params["session_id"])
    return Redirect(page.url("/account") + "#sessions", page._("The session is signed out."))


@ACCOUNT.post(
    "/sessions/end",
    access="account:self",
    form_page=account,
    title=lambda _: _("Other sessions signed out"),
)
async def end_other_sessions(page: PageContext, accounts: Accounts) -> Redirect:
    ended = await accounts.end_others(page.tx, page.viewer.account_id, page.session_id)
    page.note(sessions_ended=ended)
    notice = page._.ngettext(
        "{count} other session is signed out.", "{count} other sessions are signed out.", ended
    )
    return Redirect(page.url("/account") + "#sessions", notice)
