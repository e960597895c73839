"""The messengers that sign somebody in."""

from msgsvc_core.accounts.models import Browser
from msgsvc_core.dashboard import Moved, PageContext, Shown
from msgsvc_core.errors import NotFound, Unavailable
from msgsvc_dashboard.qr import qr
from msgsvc_dashboard.sign_in.messengers import shown_name
from msgsvc_dashboard.team.account import account
from msgsvc_dashboard.team.declared import ACCOUNT


@ACCOUNT.post("/messengers", access="self", again=account)
async def link(page: PageContext) -> Shown:
    """The links to the bots; whoever says Yes there signs in by it from then on."""
    sign_in = page.service.messenger_sign_in
    if not sign_in.is_on:
        raise NotFound("there is no such page")
    token, _waiting = await sign_in.begin(
        page.tx, "link", Browser(page.ip, ""), page.account.account_id
    )
    links = sign_in.links(token)
    if not links:
        raise Unavailable("no bot is ready yet; its messenger could not be asked")
    return Shown(
        "link_messenger.html",
        {"links": [(shown_name(name), url, qr(url)) for name, url in links.items()]},
    )


@ACCOUNT.post("/messengers/unlink", access="self", again=account)
async def unlink(page: PageContext) -> Moved:
    form = page.form
    bot, user_id = form.text("bot"), form.text("user_id")
    await page.service.messenger_sign_in.unlink(page.tx, page.account.account_id, bot, user_id)
    page.note(bot=bot)
    return Moved(page.url("/account") + "#messengers", page._("Unlinked."))
