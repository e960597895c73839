"""`msgsvc account`: dashboard accounts, including the first one, the operator's."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_dashboard.accounts import (
    Account,
    AccountLinks,
    Accounts,
    Audit,
    PasswordChanges,
    SecondFactor,
)
from msgsvc_dashboard.accounts.models import LinkPurpose

#: Accounts read per query.
PAGE = 100

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Create, list, disable and enable dashboard accounts.",
)

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Email address of the account.")]


@app.command()
def create(
    email: Email,
    name: Annotated[str, typer.Option("--name", help="Display name.")],
    operator: Annotated[
        bool, typer.Option("--operator", help="Make the account an operator of the installation.")
    ] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read a password from standard input.")
    ] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Create an account. Without a password, print a one-time sign-in link."""
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None
    account, link = asyncio.run(create_account(config, email, name, operator, password))
    if as_json:
        plain = {**_plain(account), **({} if link is None else {"link": link})}
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    typer.echo(f"created {account.account_id}, {account.email}")
    if link is not None:
        typer.echo(f"sign in once, within an hour: {link}")


@app.command()
def link(
    email: Email,
    password: Annotated[
        bool,
        typer.Option(
            "--password",
            help="The link sets a new password, within a day. Sessions end, and messengers are unlinked.",
        ),
    ] = False,
    forget_codes: Annotated[
        bool,
        typer.Option("--forget-codes", help="Remove the second factor: the phone is gone."),
    ] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Print a one-time sign-in link. Anyone holding it can sign in as this account."""
    purpose: LinkPurpose = "password" if password else "sign_in"
    url = asyncio.run(_link(config, email, purpose, forget_codes=forget_codes))
    typer.echo(json.dumps({"link": url}) if as_json else url)


@app.command("list")
def list_(config: ConfigOption = None, as_json: Json = False) -> None:
    """List all accounts, newest first."""
    accounts = asyncio.run(_list(config))
    if as_json:
        data = [_plain(account) for account in accounts]
        typer.echo(json.dumps({"data": data}, ensure_ascii=False))
        return
    if not accounts:
        typer.echo("there are no accounts; `msgsvc account create EMAIL --name NAME` creates one")
        return
    rows = [
        [
            account.account_id,
            account.email,
            account.status + (", operator" if account.is_operator else ""),
            optional_rfc3339(account.signed_in_at_ms) or "never",
            account.name,
        ]
        for account in accounts
    ]
    show_table(["id", "email", "status", "signed in", "name"], rows)


@app.command()
def disable(email: Email, config: ConfigOption = None) -> None:
    """Disable an account, and end all its sessions. No data is deleted."""
    asyncio.run(_set_active(config, email, active=False))
    typer.echo(f"{email} is disabled")


@app.command()
def enable(email: Email, config: ConfigOption = None) -> None:
    """Enable a disabled account."""
    asyncio.run(_set_active(config, email, active=True))
    typer.echo(f"{email} is enabled")


@app.command()
def operator(
    email: Email,
    off: Annotated[bool, typer.Option("--off", help="Revoke the operator role.")] = False,
    config: ConfigOption = None,
) -> None:
    """Make an account an operator, with access to all accounts and projects."""
    asyncio.run(_set_operator(config, email, wanted=not off))
    typer.echo(f"{email} {'is no longer an operator' if off else 'is an operator'}")


@dataclass(frozen=True, slots=True)
class _Parts:
    """The objects of an opened service that the commands use."""

    db: Database
    accounts: Accounts
    links: AccountLinks
    second_factor: SecondFactor
    passwords: PasswordChanges
    audit: Audit

    async def note(self, tx: Tx, action: str, account: Account) -> None:
        """Writes an audit record; a user of the command line has no account to record."""
        await self.audit.write(tx, action, account_id=account.account_id, detail={"by": "cli"})


@asynccontextmanager
async def _opened(config: Path | None, *, may_create: bool = False) -> AsyncIterator[_Parts]:
    async with opened(config, may_create=may_create) as service:
        if "dashboard" not in service.settings.loaded_plugins:
            raise typer.BadParameter("the configuration's `plugins` do not name dashboard")
        yield _Parts(
            service.db,
            service.get(Accounts),
            service.get(AccountLinks),
            service.get(SecondFactor),
            service.get(PasswordChanges),
            service.get(Audit),
        )


async def create_account(
    config: Path | None,
    email: str,
    name: str,
    operator: bool,
    password: str | None,
    *,
    may_create: bool = False,
) -> tuple[Account, str | None]:
    """Creates an account; without a password, also a one-time sign-in link, valid for an hour. The database
    is created too if it `may_create` one.

    Raises what `opened` raises, and `Conflict` if the email has an account.
    """
    async with _opened(config, may_create=may_create) as parts:
        hashed = None
        if password is not None:
            hashed = await parts.passwords.hashed(password, email)
        async with parts.db.transaction() as tx:
            account = await parts.accounts.create(tx, email=email, name=name, is_operator=operator)
            await parts.note(tx, "account.created", account)
            if hashed is not None:
                await parts.passwords.set_password(tx, account.account_id, hashed)
                return account, None
            token = await parts.links.for_account(tx, account.account_id, "sign_in")
            return account, parts.links.url(token)


async def _link(
    config: Path | None, email: str, purpose: LinkPurpose, *, forget_codes: bool
) -> str:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        account = await parts.accounts.by_email(tx, email)
        if forget_codes:
            await parts.second_factor.remove(tx, account.account_id)
        if purpose == "password":
            await parts.passwords.reset(tx, account.account_id)
        await parts.note(tx, "account.link_made", account)
        token = await parts.links.for_account(tx, account.account_id, purpose)
        return parts.links.url(token)


async def _list(config: Path | None) -> list[Account]:
    found: list[Account] = []
    async with _opened(config) as parts, parts.db.read() as tx:
        after = None
        while page := await parts.accounts.page(tx, after, PAGE):
            found += page
            after = page[-1].account_id
    return found


async def _set_active(config: Path | None, email: str, *, active: bool) -> None:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        account = await parts.accounts.by_email(tx, email)
        await parts.accounts.set_active(tx, account.account_id, active)
        await parts.note(tx, "account.enabled" if active else "account.disabled", account)


async def _set_operator(config: Path | None, email: str, *, wanted: bool) -> None:
    async with _opened(config) as parts, parts.db.transaction() as tx:
        account = await parts.accounts.by_email(tx, email)
        await parts.accounts.change(tx, account.account_id, is_operator=wanted)
        await parts.note(tx, "account.operator", account)


def _plain(account: Account) -> dict[str, Any]:
    return {
        "account_id": account.account_id,
        "email": account.email,
        "name": account.name,
        "status": account.status,
        "is_operator": account.is_operator,
        "created_at": to_rfc3339(account.created_at_ms),
        "signed_in_at": optional_rfc3339(account.signed_in_at_ms),
    }
