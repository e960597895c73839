"""The messengers for signing in to the account."""

from msgsvc_core.channels.failures import no_bot_ready
from msgsvc_core.dashboard import PageContext, Redirect, Render
from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.pages import qr_code
from msgsvc_dashboard.accounts.audit import Audit
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.accounts.models import Browser
from msgsvc_dashboard.team.account import account
from msgsvc_dashboard.team.declared import ACCOUNT
from msgsvc_dashboard.team.reauthentication import Reauthentication


@ACCOUNT.post(
    "/messengers",
    access="account:self",
    form_page=account,
    holds_connection=False,
    title=lambda _: _("Messenger link created"),
)
async def link(
    page: PageContext,
    messenger_sign_in: MessengerSignIn,
    db: Database,
    audit: Audit,
    owner: Reauthentication,
) -> Render:
    """The links to the bots; the messenger in which the page's number is picked can sign in from then on.

    Requires the password: otherwise anybody at an unlocked browser could add permanent access.
    """
    mine = page.viewer
    sign_in = messenger_sign_in
    if not sign_in.is_on:
        raise NotFound("there is no such page")
    await owner.check(page)
    async with db.transaction() as tx:
        begun = await sign_in.begin(tx, "link", Browser(page.ip, ""), mine.account_id)
        await audit.write(tx, "account.link", account_id=mine.account_id, ip=page.ip)
    ways = sign_in.ways(begun.token)
    if not ways:
        raise no_bot_ready()
    return Render(
        "link_messenger.html",
        {"ways": [(way, qr_code(way.link)) for way in ways], "number": begun.number},
    )


@ACCOUNT.post(
    "/messengers/unlink",
    access="account:self",
    form_page=account,
    title=lambda _: _("Messenger unlinked"),
)
async def unlink(page: PageContext, messenger_sign_in: MessengerSignIn) -> Redirect:
    form = page.form
    bot, user_id = form.text("bot"), form.text("user_id")
    await messenger_sign_in.unlink(page.tx, page.viewer.account_id, bot, user_id)
    page.note(bot=bot)
    return Redirect(page.url("/account") + "#messengers", page._("Unlinked."))
