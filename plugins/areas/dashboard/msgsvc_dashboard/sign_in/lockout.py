"""Whether a signed-in user could sign in again."""

from msgsvc_core.dashboard import PageContext
from msgsvc_dashboard.accounts.messengers import MessengerSignIn
from msgsvc_dashboard.frame.gate import account_of


async def has_no_way_back(page: PageContext, messenger_sign_in: MessengerSignIn) -> bool:
    """Whether they signed in by a one-time link, and have neither a password nor a messenger."""
    if account_of(page).has_password:
        return False
    linked = (
        await messenger_sign_in.linked(page.tx, page.viewer.account_id)
        if messenger_sign_in.is_on
        else []
    )
    return not linked
