"""`msgsvc listen`: forwards a project's events to a URL that the service can't reach itself."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated

import typer

from msgsvc_core.kernel.clock import SystemClock, from_rfc3339, to_rfc3339
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.security.guard import ForbiddenTarget
from msgsvc_core.security.signing import PREFIX, standard_headers
from msgsvc_webhooks.listening.feed import EventFeed, FeedRefused, FeedUnavailable
from msgsvc_webhooks.listening.listener import Forwarded, Forwarder, Listener

app = typer.Typer(add_completion=False)

#: What the secret is derived for.
PURPOSE = b"msgsvc listen"

#: A time before now: `10m`.
_AGE = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

#: Characters of a receiver's answer that are shown when it is not 2xx.
ANSWER_CHARACTERS = 200


@app.command()
def listen(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where to forward to: http://localhost:3000/hook")
    ],
    service: Annotated[
        str, typer.Option("--service", envvar="MSGSVC_URL", help="URL of the service.")
    ] = "http://127.0.0.1:8000",
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key",
            envvar="MSGSVC_API_KEY",
            help="The project's API key, with the scope events. Other users of this machine can read a"
            " command line.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option("--events", metavar="A,B", help="Forward only these events (default: all)."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Begin with what happened since then: 10m, 2h, 1d, or 2026-11-21T09:30:00Z.",
        ),
    ] = None,
    replay: Annotated[
        list[str] | None,
        typer.Option(
            "--replay",
            metavar="EVENT_ID",
            help="Forward this event again and exit; can be repeated.",
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret",
            metavar="WHSEC",
            help="Sign with this secret (default: one derived from the API key, always the same).",
        ),
    ] = None,
    header_prefix: Annotated[
        str,
        typer.Option("--header-prefix", help="The service's setting header_prefix."),
    ] = "X-Service",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each forwarded event as a line of JSON.")
    ] = False,
) -> None:
    """Forward a project's events, signed like webhooks, to a program on your machine.

    Nothing has to reach your machine: the events are read from the service. Each is sent once and shown
    with its answer; --replay sends one again.
    """
    if not api_key:
        raise typer.BadParameter(
            "name the project's API key, or set MSGSVC_API_KEY", param_hint="--api-key"
        )
    signing = _secret(secret, api_key)
    after = None if since is None else _after(since)
    show = _print_json if as_json else _print_line
    names = {name.strip() for name in (events or "").split(",")} - {""}
    try:
        forwarder = Forwarder(url, signing, SystemClock(), header_prefix)
    except ForbiddenTarget as error:
        raise typer.BadParameter(error.reason, param_hint="URL") from None
    feed = EventFeed(service, api_key)
    try:
        if replay:
            asyncio.run(_replay(feed, forwarder, replay, show))
        else:
            ready = f"signing secret: {signing}\nforwarding {service} -> {url}; Ctrl-C ends it"
            asyncio.run(_listen(feed, forwarder, names, show, after, ready))
    except (FeedRefused, FeedUnavailable) as error:
        _note(f"msgsvc: {error}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        # The way to end it.
        return


async def _listen(
    feed: EventFeed,
    forwarder: Forwarder,
    names: set[str],
    show: Callable[[Forwarded], None],
    after: str | None,
    ready: str,
) -> None:
    listener = Listener(feed, forwarder, names=names, show=show, warn=_note)
    try:
        # A secret is derived from the key, so it is worth showing once the service has taken that.
        await listener.run(lambda: _note(ready), after)
    finally:
        await forwarder.close()
        await feed.close()


async def _replay(
    feed: EventFeed, forwarder: Forwarder, ids: list[str], show: Callable[[Forwarded], None]
) -> None:
    all_accepted = True
    try:
        for event_id in ids:
            one = await forwarder.forward(await feed.find(event_id))
            # At once: the next may be refused, which ends the command.
            show(one)
            all_accepted = all_accepted and one.is_accepted
    finally:
        await forwarder.close()
        await feed.close()
    if not all_accepted:
        raise typer.Exit(1)


def _secret(given: str | None, api_key: str) -> str:
    """The one given; or one that stays the same for a key, and from which the key can't be found."""
    if given is None:
        digest = hmac.digest(api_key.encode(), PURPOSE, hashlib.sha256)
        return PREFIX + base64.b64encode(digest).decode()
    try:
        standard_headers("", b"", [given], 0)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--secret") from None
    return given


def _after(since: str) -> str:
    """The id that all events since then follow."""
    age = _AGE.fullmatch(since)
    try:
        ms = (
            SystemClock().now_ms() - int(age[1]) * _SECONDS[age[2]] * 1000
            if age
            else from_rfc3339(since)
        )
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None
    return earliest_id("evt", max(0, ms))


def _print_line(one: Forwarded) -> None:
    attempt = one.attempt
    at = datetime.fromtimestamp(attempt.started_at_ms / 1000).astimezone()
    answer = str(attempt.status_code) if attempt.status_code is not None else "---"
    line = (
        f"{at:%H:%M:%S}  {one.delivery.event:<26}  {one.delivery.event_id}  {answer}"
        f"  {attempt.duration_ms} ms"
    )
    if not one.is_accepted:
        why = attempt.error or " ".join(attempt.answer[:ANSWER_CHARACTERS].split())
        line += f"  {why}" if why else ""
    colour = typer.colors.GREEN if one.is_accepted else typer.colors.RED
    plain = "NO_COLOR" in os.environ
    typer.echo(line if plain else typer.style(line, fg=colour))


def _print_json(one: Forwarded) -> None:
    attempt = one.attempt
    typer.echo(
        json.dumps(
            {
                "time": to_rfc3339(attempt.started_at_ms),
                "event": one.delivery.event,
                "event_id": one.delivery.event_id,
                "delivery_id": one.delivery.delivery_id,
                "status_code": attempt.status_code,
                "duration_seconds": attempt.duration_ms / 1000,
                "error": attempt.error,
            },
            ensure_ascii=False,
        )
    )


def _note(text: str) -> None:
    """What is not about an event, beside the lines that a program may read."""
    typer.echo(text, err=True)
