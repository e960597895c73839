"""`msgsvc member`: the members of a project."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from msgsvc_core.api.pagination import next_cursor
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json, ProjectId
from msgsvc_core.cli.tables import show_table
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.members.models import AddMemberBody, Member, MemberAnswer, MemberQuery, Role
from msgsvc_core.service import Service

#: Members read per query.
PAGE = 100

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Add, list and remove members of a project."
)

MemberId = Annotated[str, typer.Argument(metavar="MEMBER_ID", help="For example mem_02Yz...")]


@app.command()
def add(
    project_id: ProjectId,
    email: Annotated[
        str, typer.Argument(metavar="EMAIL", help="Identifies the member in the project.")
    ],
    name: Annotated[str, typer.Option("--name", help="Name shown to colleagues and customers.")],
    role: Annotated[Role, typer.Option("--role", help="Role of the member.")] = "agent",
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Add a member to a project. If an account has the email, it can open the project in the dashboard."""
    try:
        body = AddMemberBody(name=name, email=email, role=role)
    except ValidationError as error:
        fault = error.errors()[0]
        field = str(fault["loc"][0])
        what = fault["msg"].removeprefix("Value error, ")
        hint = "EMAIL" if field == "email" else f"--{field}"
        raise typer.BadParameter(what, param_hint=hint) from None
    member, access = asyncio.run(_add(config, project_id, body))
    if as_json:
        typer.echo(json.dumps(_plain(member), ensure_ascii=False))
        return
    typer.echo(f"added {member.member_id}, {member.name!r}, as {member.role}{access}")


@app.command("list")
def list_(project_id: ProjectId, config: ConfigOption = None, as_json: Json = False) -> None:
    """List a project's members, newest first."""
    members = asyncio.run(_list(config, project_id))
    if as_json:
        data = [_plain(member) for member in members]
        typer.echo(json.dumps({"data": data}, ensure_ascii=False))
        return
    if not members:
        typer.echo(f"there are no members; `msgsvc member add {project_id} EMAIL` adds one")
        return
    rows = [
        [
            member.member_id,
            member.email,
            member.role,
            str(len(member.subscriber_ids)),
            member.name,
        ]
        for member in members
    ]
    show_table(["id", "email", "role", "messengers", "name"], rows)


@app.command()
def remove(
    project_id: ProjectId,
    member_id: MemberId,
    erase: Annotated[
        bool, typer.Option("--erase", help="Also erase the name and email permanently.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Remove a member from a project and unlink their messengers."""
    asyncio.run(_remove(config, project_id, member_id, erase=erase))
    typer.echo(f"{member_id} is {'erased' if erase else 'removed'}")


async def _add(config: Path | None, project_id: str, body: AddMemberBody) -> tuple[Member, str]:
    """The member, and in words whether they can open the dashboard, if a plugin keeps accounts."""
    async with opened(config) as service, service.db.transaction() as tx:
        await service.projects.get(tx, project_id)
        member = await service.members.add(tx, project_id, body)
        access = await _link(service, tx, member) if service.accounts.are_kept else ""
        await service.audit.write_command(
            tx, "member.add", project_id, member.member_id, role=member.role
        )
        return member, access


async def _link(service: Service, tx: Tx, member: Member) -> str:
    try:
        account = await service.accounts.find_by_email(tx, member.email)
    except NotFound:
        return (
            "; no account has this email, so the dashboard stays closed to them: invite them on the project's"
            " page Team, or run `msgsvc account create` first"
        )
    await service.members.link_account(tx, member.project_id, member.member_id, account.account_id)
    return f"; the account {account.email} can open the project"


async def _list(config: Path | None, project_id: str) -> list[Member]:
    found: list[Member] = []
    async with opened(config) as service, service.db.read() as tx:
        await service.projects.get(tx, project_id)
        cursor = None
        while len(page := await _page(service, tx, project_id, cursor)) > PAGE:
            found += page[:PAGE]
            cursor = next_cursor(found[-1].member_id)
        return found + page


async def _page(service: Any, tx: Any, project_id: str, cursor: str | None) -> list[Member]:
    query = MemberQuery(limit=PAGE, cursor=cursor)
    page: list[Member] = await service.members.page(tx, project_id, query)
    return page


async def _remove(config: Path | None, project_id: str, member_id: str, *, erase: bool) -> None:
    async with opened(config) as service, service.db.transaction() as tx:
        end = service.members.erase if erase else service.members.remove
        await end(tx, project_id, member_id)
        action = "member.erase" if erase else "member.remove"
        await service.audit.write_command(tx, action, project_id, member_id)


def _plain(member: Member) -> dict[str, Any]:
    return MemberAnswer.of(member).to_data()
