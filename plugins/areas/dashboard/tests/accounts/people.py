"""Accounts for tests, and browsers that ask to be signed in."""

from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Account, Accounts, PasswordChanges
from msgsvc_dashboard.accounts.models import Browser

PASSWORD = "a winter evening by the sea"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def browser(ip: str = "203.0.113.7", device: str = "") -> Browser:
    return Browser(ip, FIREFOX, device)


async def new_account(
    service: Service, email: str = "ann@shop.example", *, password: str | None = PASSWORD
) -> Account:
    hashed = await service.get(PasswordChanges).hashed(password, email) if password else None
    async with service.db.transaction() as tx:
        account = await service.get(Accounts).create(tx, email=email, name="Ann Lee")
        if hashed is not None:
            await service.get(PasswordChanges).set_password(tx, account.account_id, hashed)
    return account
