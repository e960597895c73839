"""`msgsvc project`: projects, the tenants of the service."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.tables import show_table
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.projects.models import Project

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Create, list, disable and enable projects."
)

ProjectId = Annotated[str, typer.Argument(metavar="PROJECT_ID", help="For example prj_02Yz...")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]


@app.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Shown to users, as in “Sign in to Shop?”.")
    ],
    account: Annotated[
        str | None,
        typer.Option(
            "--account",
            metavar="EMAIL",
            help="Account that owns the project (default: the only account there is).",
        ),
    ] = None,
    no_account: Annotated[
        bool, typer.Option("--no-account", help="The project belongs to no account.")
    ] = False,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Create a project. Continue with `msgsvc key create`."""
    if not name.strip():
        raise typer.BadParameter("a name is needed", param_hint="NAME")
    if account is not None and no_account:
        raise typer.BadParameter("--account and --no-account: one of them")
    project, owner = asyncio.run(_create(config, name.strip(), account, no_account=no_account))
    if as_json:
        typer.echo(json.dumps(_plain(project), ensure_ascii=False))
        return
    typer.echo(f"created {project.project_id}, {project.name!r}{owner}")
    typer.echo(f"next: msgsvc key create {project.project_id}")


@app.command("list")
def list_(config: ConfigOption = None, as_json: Json = False) -> None:
    """List all projects, oldest first."""
    projects = asyncio.run(_list(config))
    if as_json:
        data = [_plain(project) for project in projects]
        typer.echo(json.dumps({"data": data}, ensure_ascii=False))
        return
    if not projects:
        typer.echo("there are no projects; `msgsvc project create NAME` creates one")
        return
    rows = [list(_plain(project).values()) for project in projects]
    show_table(["id", "name", "status", "created"], rows)


@app.command()
def give(
    project_id: ProjectId,
    email: Annotated[str, typer.Argument(metavar="EMAIL", help="Account that becomes the owner.")],
    config: ConfigOption = None,
) -> None:
    """Transfer a project to an account."""
    asyncio.run(_give(config, project_id, email))
    typer.echo(f"{project_id} belongs to {email}")


@app.command()
def disable(project_id: ProjectId, config: ConfigOption = None) -> None:
    """Reject a project's requests and dashboard changes, and pause its broadcasts.

    Messages accepted before are still sent; no data is deleted.
    """
    asyncio.run(_set_active(config, project_id, active=False))
    typer.echo(f"{project_id} is disabled: its requests are rejected with 403")


@app.command()
def enable(project_id: ProjectId, config: ConfigOption = None) -> None:
    """Enable a disabled project."""
    asyncio.run(_set_active(config, project_id, active=True))
    typer.echo(f"{project_id} is enabled")


async def _create(
    config: Path | None, name: str, email: str | None, *, no_account: bool
) -> tuple[Project, str]:
    """The project, and in words whose it is, if a plugin keeps accounts."""
    async with opened(config) as service, service.db.transaction() as tx:
        account = None
        if email is not None:
            account = await service.accounts.find_by_email(tx, email)
        elif not no_account:
            account = await service.accounts.find_sole(tx)
        if account is None:
            project = await service.projects.add(tx, name)
            give = f"msgsvc project give {project.project_id} EMAIL"
            hint = f"; to open it in the dashboard, give it to an account: {give}"
            owner = hint if service.accounts.are_kept else ""
        else:
            project = await service.accounts.create_project(tx, account.account_id, name)
            owner = f", which belongs to {account.email}"
        await service.audit.write_command(tx, "project.create", project.project_id, name=name)
        return project, owner


async def _give(config: Path | None, project_id: str, email: str) -> None:
    async with opened(config) as service, service.db.transaction() as tx:
        account = await service.accounts.find_by_email(tx, email)
        await service.projects.set_owner(tx, project_id, account.account_id)
        await service.audit.write_command(tx, "project.give", project_id, account.account_id)


async def _list(config: Path | None) -> list[Project]:
    async with opened(config) as service:
        return await service.projects.list()


async def _set_active(config: Path | None, project_id: str, *, active: bool) -> None:
    async with opened(config) as service, service.db.transaction() as tx:
        await service.projects.switch(tx, project_id, active=active)
        action = "project.enable" if active else "project.disable"
        await service.audit.write_command(tx, action, project_id)


def _plain(project: Project) -> dict[str, str]:
    return {
        "project_id": project.project_id,
        "name": project.name,
        "status": project.status,
        "created_at": to_rfc3339(project.created_at_ms),
    }
