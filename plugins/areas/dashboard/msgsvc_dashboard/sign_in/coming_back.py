"""Whether somebody who is signed in could sign in again."""

from msgsvc_core.accounts.messengers import MessengerSignIn
from msgsvc_core.dashboard import PageContext


async def has_no_way_back(page: PageContext, messenger_sign_in: MessengerSignIn) -> bool:
    """Whether a link let them in, which is used up, and they have neither a password nor a messenger."""
    if page.account.has_password:
        return False
    linked = (
        await messenger_sign_in.linked(page.tx, page.account.account_id)
        if messenger_sign_in.is_on
        else []
    )
    return not linked
