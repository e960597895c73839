"""Setting up and managing the second factor."""

from urllib.parse import urlsplit

from msgsvc_core.config.settings import Settings
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.pages import qr_code
from msgsvc_dashboard.accounts import totp
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.second_factor import SecondFactor
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_dashboard.team.declared import ACCOUNT
from msgsvc_dashboard.team.reauthentication import Reauthentication

PATH = "/account/second-factor"


@ACCOUNT.get("/second-factor", access="account:self")
async def second_factor(
    page: PageContext, accounts: Accounts, settings: Settings, all_second_factor: SecondFactor
) -> Render:
    return await _shown(page, accounts, settings, all_second_factor)


@ACCOUNT.post(
    "/second-factor",
    access="account:self",
    form_page=second_factor,
    title=lambda _: _("Two-factor authentication setup started"),
)
async def offer(
    page: PageContext, all_second_factor: SecondFactor, accounts: Accounts, settings: Settings
) -> Render:
    """A new secret, which is in use once a code of it is entered.

    Shown only once: otherwise anybody at an unlocked browser could read it, and wait for its owner to confirm
    it.
    """
    return await _shown(
        page,
        accounts,
        settings,
        all_second_factor,
        await all_second_factor.offer(page.tx, page.viewer),
    )


@ACCOUNT.post(
    "/second-factor/confirm",
    access="account:self",
    form_page=second_factor,
    holds_connection=False,
    title=lambda _: _("Two-factor authentication turned on"),
)
async def confirm(
    page: PageContext,
    db: Database,
    all_second_factor: SecondFactor,
    audit: Audit,
    owner: Reauthentication,
) -> Render:
    """Requires the password here, not before: otherwise a secret on an unlocked screen would allow anybody
    to lock the owner out, with a phone of their own."""
    mine = page.viewer
    await owner.check(page)
    async with db.transaction() as tx:
        codes = await all_second_factor.confirm(tx, mine.account_id, page.form.text("code"))
        await audit.write(tx, "account.confirm", account_id=mine.account_id, ip=page.ip)
    return Render("recovery_codes.html", {"codes": codes})


@ACCOUNT.post(
    "/second-factor/codes",
    access="account:self",
    form_page=second_factor,
    holds_connection=False,
    title=lambda _: _("Recovery codes renewed"),
)
async def renew_codes(
    page: PageContext,
    db: Database,
    all_second_factor: SecondFactor,
    audit: Audit,
    owner: Reauthentication,
) -> Render:
    """Creates new recovery codes; the old ones become invalid."""
    await owner.check(page)
    account_id = page.viewer.account_id
    async with db.transaction() as tx:
        codes = await all_second_factor.renew_codes(tx, account_id)
        await audit.write(tx, "account.renew_codes", account_id=account_id, ip=page.ip)
    return Render("recovery_codes.html", {"codes": codes})


@ACCOUNT.post(
    "/second-factor/remove",
    access="account:self",
    form_page=second_factor,
    holds_connection=False,
    title=lambda _: _("Two-factor authentication turned off"),
)
async def remove(
    page: PageContext,
    db: Database,
    all_second_factor: SecondFactor,
    audit: Audit,
    owner: Reauthentication,
) -> Redirect:
    await owner.check(page)
    account_id = page.viewer.account_id
    async with db.transaction() as tx:
        await all_second_factor.remove(tx, account_id)
        await audit.write(tx, "account.remove_second_factor", account_id=account_id, ip=page.ip)
    return Redirect(page.url("/account"), page._("Two-factor authentication is off."))


async def _shown(
    page: PageContext,
    accounts: Accounts,
    settings: Settings,
    all_second_factor: SecondFactor,
    secret: str = "",
) -> Render:
    """The page as things stand; with the `secret` that was made just now, if one was."""
    account_id = page.viewer.account_id
    mine = await accounts.find(page.tx, account_id)
    host = urlsplit(settings.base_url).hostname or "msgsvc"
    link = totp.enrolment_link(secret, mine.email, host) if secret else ""
    return Render(
        "second_factor.html",
        {
            "mine": mine,
            "secret": secret,
            "code": qr_code(link) if link else "",
            "waits": await all_second_factor.offered(page.tx, account_id) is not None,
            "codes_left": await all_second_factor.codes_left(page.tx, account_id),
        },
    )
