"""`msgsvc channels`: bots added by projects, for the operator of the service."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.channels import ChannelHealth
from msgsvc_core.channels.health.check import check_channel
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.project_channels.models import ChannelAnswer, OwnChannel
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.reception.models import ReceptionAnswer, reception_of
from msgsvc_core.channels.shelf import Shelf, ShelvedItem
from msgsvc_core.channels.shelf.models import ShelvedItemAnswer
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.cli.tables import show_table
from msgsvc_core.kernel.errors import NotFound

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="List and check channels added by projects; lift the limits of any, and see what it set aside.",
)


@app.command("list")
def list_(config: ConfigOption = None, as_json: Json = False) -> None:
    """List the channels added by projects, oldest first, without their secrets."""
    channels = [_plain(*found) for found in asyncio.run(_list(config))]
    if as_json:
        typer.echo(json.dumps({"data": channels}, ensure_ascii=False))
        return
    if not channels:
        typer.echo("there are none; projects add them with POST /v1/channels")
        return
    rows = [["" if cell is None else cell for cell in each.values()] for each in channels]
    head = ["id", "project", "name", "plugin", "status", "detail", "reception"]
    show_table([*head, "since", "why"], rows)


@app.command()
def check(
    channel_id: Annotated[
        str, typer.Argument(metavar="CHANNEL_ID", help="For example chn_02Yz...")
    ],
    config: ConfigOption = None,
) -> None:
    """Check a bot with its platform. Exits with 1 if it can't send or receive."""
    health, reception = asyncio.run(_check(config, channel_id))
    typer.echo(health.detail or ("works" if health.ok else "does not work"))
    interrupted = reception is not None and reception.status == "interrupted"
    if reception is not None and interrupted:
        typer.echo(f"has received nothing since {reception.since}: {reception.detail}")
    if not health.ok or interrupted:
        raise typer.Exit(1)


@app.command("lift-limits")
def lift_limits(
    channel: Annotated[
        str, typer.Argument(metavar="CHANNEL", help="Its name in the configuration, or chn_...")
    ],
    config: ConfigOption = None,
) -> None:
    """Has a channel's own limits, such as those against toll fraud, begin to count anew.

    Says which stop messages now. Exits with 1 if none does."""
    limitation = asyncio.run(_lift_limits(config, channel))
    typer.echo(limitation or "no limit stops messages of this channel")
    if limitation is None:
        raise typer.Exit(1)


@app.command()
def shelf(
    channel: Annotated[
        str, typer.Argument(metavar="CHANNEL", help="Its name in the configuration, or chn_...")
    ],
    raw: Annotated[
        str, typer.Option(metavar="ITEM_ID", help="Write this item as it arrived.")
    ] = "",
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """List what arrived on a channel and could not be read or processed, newest first."""
    if raw:
        typer.echo(asyncio.run(_shelved(config, channel, raw)), nl=False)
        return
    items = [ShelvedItemAnswer.of(item) for item in asyncio.run(_shelf(config, channel))]
    if as_json:
        shown = {"data": [item.model_dump(mode="json") for item in items]}
        typer.echo(json.dumps(shown, ensure_ascii=False))
        return
    if not items:
        typer.echo("nothing is on the shelf of this channel")
        return
    head = ["id", "received", "kind", "reason", "detail", "bytes"]
    show_table(
        head,
        [
            [item.item_id, item.received_at, item.kind, item.reason, item.detail, str(item.size)]
            for item in items
        ],
    )


async def _shelf(config: Path | None, key: str) -> list[ShelvedItem]:
    async with opened(config) as service, service.db.read() as tx:
        return await service.get(Shelf).page(tx, key, None, service.settings.limits.shelf_items)


async def _shelved(config: Path | None, key: str, item_id: str) -> bytes:
    async with opened(config) as service, service.db.read() as tx:
        _, content = await service.get(Shelf).read(tx, key, item_id)
        return content


async def _lift_limits(config: Path | None, key: str) -> str | None:
    async with opened(config) as service:
        channel = await service.channels.find(key)
        if channel is None:
            raise NotFound("there is no channel {channel_id!r}", channel_id=key)
        async with service.db.transaction() as tx:
            limitation = await channel.limitation(tx)
            await channel.lift_limitation(tx)
        return limitation


async def _list(config: Path | None) -> list[tuple[OwnChannel, ChannelAnswer]]:
    async with opened(config) as service:
        await service.get(ChannelSync).refresh()
        async with service.db.read() as tx:
            found = await service.get(ProjectChannels).list_all(tx)
            return list(
                zip(found, await service.get(ProjectChannels).answers(tx, found), strict=True)
            )


async def _check(
    config: Path | None, channel_id: str
) -> tuple[ChannelHealth, ReceptionAnswer | None]:
    async with opened(config) as service:
        channel = await service.channels.find(channel_id)
        if channel is None:
            raise NotFound("there is no channel {channel_id!r}", channel_id=channel_id)
        async with service.db.read() as tx:
            state = await service.get(ChannelStates).find(tx, channel.key)
        return await check_channel(channel), reception_of(channel, state)


def _plain(channel: OwnChannel, answer: ChannelAnswer) -> dict[str, str | None]:
    reception = answer.reception
    return {
        "channel_id": channel.channel_id,
        "project_id": channel.project_id,
        "name": channel.name,
        "plugin": channel.plugin,
        "status": answer.status,
        "detail": answer.detail,
        "reception": None if reception is None else reception.status,
        "interrupted_since": None if reception is None else reception.since,
        "interrupted_detail": None if reception is None else reception.detail,
    }
