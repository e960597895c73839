"""`msgsvc channels`: bots that projects brought, for the operator of the service."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.channels import ChannelHealth
from msgsvc_core.channels.asking import check_channel
from msgsvc_core.channels.project_channels.models import OwnChannel, OwnChannelAnswer
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.kernel.errors import NotFound

app = typer.Typer(no_args_is_help=True, help="List and check the channels of projects' own.")


@app.command("list")
def list_(config: ConfigOption = None, as_json: Json = False) -> None:
    """List the channels that projects brought, the oldest first; none of their secrets."""
    channels = [_plain(*found) for found in asyncio.run(_list(config))]
    if as_json:
        typer.echo(json.dumps({"data": channels}, ensure_ascii=False))
        return
    if not channels:
        typer.echo("there are none; projects add theirs by POST /v1/channels")
        return
    rows = [["" if cell is None else cell for cell in each.values()] for each in channels]
    show_table(["id", "project", "name", "plugin", "status", "detail"], rows)


@app.command()
def check(
    channel_id: Annotated[
        str, typer.Argument(metavar="CHANNEL_ID", help="For example chn_02Yz...")
    ],
    config: ConfigOption = None,
) -> None:
    """Ask a channel's platform how the bot is; exit 1 if it can't work."""
    health = asyncio.run(_check(config, channel_id))
    typer.echo(health.detail or ("works" if health.ok else "does not work"))
    if not health.ok:
        raise typer.Exit(1)


async def _list(config: Path | None) -> list[tuple[OwnChannel, OwnChannelAnswer]]:
    async with opened(config) as service:
        await service.channels.follower.look()
        async with service.db.read() as tx:
            found = await service.own_channels.list_all(tx)
            return list(zip(found, await service.own_channels.answers(tx, found), strict=True))


async def _check(config: Path | None, channel_id: str) -> ChannelHealth:
    async with opened(config) as service:
        channel = await service.channels.find(channel_id)
        if channel is None:
            raise NotFound(f"there is no channel {channel_id!r}")
        return await check_channel(channel)


def _plain(channel: OwnChannel, answer: OwnChannelAnswer) -> dict[str, str | None]:
    return {
        "channel_id": channel.channel_id,
        "project_id": channel.project_id,
        "name": channel.name,
        "plugin": channel.plugin,
        "status": answer.status,
        "detail": answer.detail,
    }
