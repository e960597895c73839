"""`msgsvc billing`: credits and plans of accounts."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_billing.models import State
from msgsvc_billing.service import Billing
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import to_rfc3339

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Plans and credits of accounts.")

#: What is done to an account, in one transaction.
Work = Callable[[Billing, Tx, str], Awaitable[State]]

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="Names the account.")]
Note = Annotated[str, typer.Option("--note", help="Why; it stands in the ledger.")]


@app.command()
def grant(
    email: Email,
    count: Annotated[
        int,
        typer.Argument(metavar="CREDITS", help="A negative number, after `--`, removes credits."),
    ],
    note: Note = "",
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Add a pack of credits to an account. Packs do not expire."""

    async def work(billing: Billing, tx: Tx, account_id: str) -> State:
        return await billing.grant(tx, account_id, count, note)

    state = asyncio.run(_work(config, email, work, "billing.grant", credits=count))
    _print_state(
        state, as_json, f"{email} has {state.balance} credits, {state.packs} of them of packs"
    )


@app.command()
def plan(
    email: Email,
    name: Annotated[str, typer.Argument(metavar="PLAN", help="One of `[billing.plans]`.")],
    note: Note = "",
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Change an account's plan immediately. This month's usage counts towards the new plan."""

    async def work(billing: Billing, tx: Tx, account_id: str) -> State:
        return await billing.change_plan(tx, account_id, name, note)

    state = asyncio.run(_work(config, email, work, "billing.change_plan", plan=name))
    _print_state(
        state, as_json, f"{email} has the plan {state.plan!r}, and {state.balance} credits"
    )


@app.command()
def show(email: Email, config: ConfigOption = None, as_json: Json = False) -> None:
    """Show an account's plan and credits."""

    async def work(billing: Billing, tx: Tx, account_id: str) -> State:
        return await billing.state_of(tx, account_id)

    state = asyncio.run(_work(config, email, work))
    until = to_rfc3339(state.period_ends_ms)
    _print_state(
        state,
        as_json,
        f"{email} has the plan {state.plan!r}; {state.allowance} credits of this month, until {until};"
        f" {state.packs} of packs",
    )


async def _work(
    config: Path | None, email: str, work: Work, action: str = "", **detail: object
) -> State:
    """Runs `work`; `action` is its name in the audit log, the same as that of the dashboard's page."""
    async with opened(config) as service, service.db.transaction() as tx:
        if "billing" not in service.settings.loaded_plugins:
            raise typer.BadParameter("the configuration's `plugins` do not name billing")
        billing = service.get(Billing)
        account_id = (await service.accounts.find_by_email(tx, email)).account_id
        state = await work(billing, tx, account_id)
        if action:
            said = {"by": "cli", **detail}
            await service.audit.write(tx, action, account_id=account_id, detail=said)
        return state


def _print_state(state: State, as_json: bool, text: str) -> None:
    if not as_json:
        typer.echo(text)
        return
    shown = {
        "account_id": state.account_id,
        "plan": state.plan,
        "allowance_left": state.allowance,
        "packs": state.packs,
        "balance": state.balance,
        "period_ends_at": to_rfc3339(state.period_ends_ms),
    }
    typer.echo(json.dumps(shown))
