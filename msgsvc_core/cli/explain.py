"""`msgsvc explain`: why a message, a job, a broadcast or a webhook delivery is where it is."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.cli.configuration import ConfigOption, opened
from msgsvc_core.cli.projects import Json
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.telemetry.explanations import Explainer, Explanation, TimelineEntry, moment


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Of a message (msg_...), a job or broadcast (job_...), and so on."
        ),
    ],
    config: ConfigOption = None,
    as_json: Json = False,
) -> None:
    """Say why a message is where it is: a sentence, what is known, and what happened when.

    Also for jobs, broadcasts and, with their plugin, webhook deliveries (whd_...). Reads the database alone,
    so it works beside a running service and without one.
    """
    found = asyncio.run(_explain(config, what))
    timeline = sorted(found.timeline, key=lambda entry: entry.at_ms)
    if as_json:
        typer.echo(json.dumps(_plain(found, timeline), ensure_ascii=False))
        return
    typer.echo(found.summary)
    known = {name: fact for name, fact in found.facts.items() if fact is not None}
    if known:
        typer.echo()
    width = max(map(len, known), default=0)
    for name, fact in known.items():
        typer.echo(f"  {name:{width}}  {fact}")
    if timeline:
        typer.echo()
    for entry in timeline:
        typer.echo(f"  {moment(entry.at_ms)}  {entry.text}")


async def _explain(config: Path | None, what: str) -> Explanation:
    async with opened(config) as service:
        # Channels of projects are in the database.
        await service.get(ChannelSync).refresh()
        explainers = service.explainers()
        alike = [each for each in explainers if what.startswith(f"{each.prefix}_")]
        if not alike:
            raise _unknown_kind(what, explainers)
        async with service.db.read() as tx:
            for each in alike:
                explanation = await each.explain(tx, what)
                if explanation is not None:
                    return explanation
    raise NotFound(
        "there is no {what!r}; jobs that are done and what retention has deleted are not kept",
        what=what,
    )


def _unknown_kind(what: str, explainers: list[Explainer]) -> NotFound:
    prefixes = ", ".join(f"{prefix}_..." for prefix in dict.fromkeys(e.prefix for e in explainers))
    return NotFound(
        "{what!r} can't be explained; these ids can: {prefixes}", what=what, prefixes=prefixes
    )


def _plain(found: Explanation, timeline: list[TimelineEntry]) -> dict[str, object]:
    return {
        "summary": found.summary,
        "facts": dict(found.facts),
        "timeline": [{"at": to_rfc3339(entry.at_ms), "text": entry.text} for entry in timeline],
    }
