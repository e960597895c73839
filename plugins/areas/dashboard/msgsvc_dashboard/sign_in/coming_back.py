"""Whether somebody who is signed in could sign in again."""

from msgsvc_core.dashboard import PageContext


async def has_no_way_back(page: PageContext) -> bool:
    """Whether a link let them in, which is used up, and they have neither a password nor a messenger."""
    if page.account.has_password:
        return False
    messengers = page.service.messenger_sign_in
    linked = await messengers.linked(page.tx, page.account.account_id) if messengers.is_on else []
    return not linked
