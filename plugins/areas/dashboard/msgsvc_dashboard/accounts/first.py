"""The first account, which `msgsvc init` creates."""

from pathlib import Path

from msgsvc_core.plugins.accounts import FirstAccount


async def create_first_account(config: Path, email: str) -> str:
    """Creates the operator's account, and the database if needed."""
    from msgsvc_dashboard.accounts.commands import create_account  # noqa: PLC0415 - typer is the command line's alone

    name = email.partition("@")[0]
    _, link = await create_account(
        config, email, name, operator=True, password=None, may_create=True
    )
    return f"{email} runs it; once it serves, sign in within an hour: {link}"


FIRST_ACCOUNT = FirstAccount(
    question="Email of who runs it, for the dashboard (empty: later)", create=create_first_account
)
