"""`msgsvc key`: API keys, whose secret is shown once."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json, ProjectId
from msgsvc_core.cli.tables import show_table
from msgsvc_core.kernel.clock import (
    DAY_MS,
    check_year,
    from_rfc3339,
    optional_rfc3339,
    to_datetime,
    to_rfc3339,
)
from msgsvc_core.projects.models import (
    ALL_BUT_OWNERS,
    EVERYTHING,
    READ_ONLY,
    ApiKey,
    ListedKey,
)

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Create, list and revoke API keys."
)


@app.command()
def create(
    project_id: ProjectId,
    name: Annotated[str, typer.Option("--name", help="What the key is for.")] = "default",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="AREA",
            help="Scope of the key, repeatable; *read to read everything (default: all).",
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="DAYS|TIME",
            help="Days until it expires, or a time as 2027-01-31T00:00:00Z (default: never).",
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Create an API key and print its secret, which is shown only once."""
    scopes = tuple(scope or [EVERYTHING])
    key, secret = asyncio.run(_create(config, project_id, name, scopes, expires))
    if as_json:
        answer = {
            "project_id": key.project_id,
            "key_id": key.key_id,
            "name": key.name,
            "scopes": list(key.scopes),
            "expires_at": optional_rfc3339(key.expires_at_ms),
            "key": secret,
        }
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    until = "" if key.expires_at_ms is None else f", until {to_rfc3339(key.expires_at_ms)}"
    typer.echo(f"created {key.key_id}, {key.name!r}, for {', '.join(key.scopes)}{until}")
    typer.echo("the secret, shown only once:")
    typer.echo(secret)


@app.command("list")
def list_(project_id: ProjectId, config: ConfigOption = None, as_json: Json = False) -> None:
    """List a project's keys, oldest first, including revoked and expired ones."""
    keys = [_plain(listed) for listed in asyncio.run(_list(config, project_id))]
    if as_json:
        typer.echo(json.dumps({"data": keys}, ensure_ascii=False))
        return
    if not keys:
        typer.echo(f"there are no keys; `msgsvc key create {project_id}` creates one")
        return
    show_table(
        ["id", "name", "prefix", "scopes", "created", "last used", "expires", "revoked"],
        [*map(_row, keys)],
    )


@app.command()
def revoke(
    project_id: ProjectId,
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="For example key_02Yz...")],
    config: ConfigOption = None,
) -> None:
    """Revoke a key. Serving processes accept it for up to one more second."""
    asyncio.run(_revoke(config, project_id, key_id))
    typer.echo(f"{key_id} is revoked")


async def _create(
    config: Path | None, project_id: str, name: str, scopes: Sequence[str], expires: str | None
) -> tuple[ApiKey, str]:
    async with opened(config) as service:
        areas = {endpoint.area for endpoint in service.endpoints}
        # Otherwise a misspelt scope would show only as a 403 when the key is used.
        if unknown := [
            scope
            for scope in scopes
            if scope not in {EVERYTHING, ALL_BUT_OWNERS, READ_ONLY, *areas}
        ]:
            raise typer.BadParameter(
                f"no area is named {unknown[0]!r}; there are {', '.join(sorted(areas))}",
                param_hint="--scope",
            )
        async with service.db.transaction() as tx:
            made = await service.projects.add_key(
                tx, project_id, name, scopes, expires_at_ms=_expiry(expires, service.clock.now_ms())
            )
            key = made[0]
            noted = {"name": name, "scopes": ", ".join(scopes)}
            if key.expires_at_ms is not None:
                noted["expires_at"] = to_rfc3339(key.expires_at_ms)
            await service.audit.write_command(tx, "key.create", project_id, key.key_id, **noted)
        return made


def _expiry(expires: str | None, now_ms: int) -> int | None:
    if expires is None:
        return None
    try:
        expires_at_ms = (
            now_ms + int(expires) * DAY_MS if expires.isdecimal() else from_rfc3339(expires)
        )
        check_year(to_datetime(expires_at_ms).year)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from None
    return expires_at_ms


async def _list(config: Path | None, project_id: str) -> Sequence[ListedKey]:
    async with opened(config) as service:
        return await service.projects.list_keys(project_id)


def _plain(listed: ListedKey) -> dict[str, Any]:
    key = listed.key
    return {
        "key_id": key.key_id,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": list(key.scopes),
        "created_at": to_rfc3339(listed.created_at_ms),
        "last_used_at": optional_rfc3339(listed.last_used_at_ms),
        "expires_at": optional_rfc3339(key.expires_at_ms),
        "revoked_at": optional_rfc3339(listed.revoked_at_ms),
    }


def _row(plain: Mapping[str, Any]) -> list[str]:
    return [cell or "" for cell in {**plain, "scopes": ", ".join(plain["scopes"])}.values()]


async def _revoke(config: Path | None, project_id: str, key_id: str) -> None:
    async with opened(config) as service, service.db.transaction() as tx:
        await service.projects.revoke_key_in(tx, project_id, key_id)
        await service.audit.write_command(tx, "key.revoke", project_id, key_id)
