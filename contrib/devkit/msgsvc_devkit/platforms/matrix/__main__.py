"""Runs the fake for manual trials: `python -m msgsvc_devkit.platforms.matrix`."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable

from msgsvc_devkit.keyboard import run_by_hand, section_of, typed_lines
from msgsvc_devkit.platforms.matrix.homeserver import FakeMatrix
from msgsvc_devkit.platforms.matrix.people import Person

HELP = """\
You are Ann, who has no chat with the bot. What you can do, and what the bot says, is shown here:
  start           opens a chat with the bot     open LINK        the same, by its link
  write TEXT      writes to the bot             reply TEXT       replies to its last message
  edit TEXT       edits your last message       kick, block      removes the bot, or bans it
  leave, rejoin   the chat                      quit
"""


def main() -> None:
    """Serves the fake until `quit`, end of input, or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A fake Matrix homeserver, on this machine.")
    parser.add_argument("--port", type=int, default=8092)
    options = parser.parse_args()
    run_by_hand(_serve(options), parser, options.port)


async def _serve(options: argparse.Namespace) -> None:
    homeserver = FakeMatrix()
    await homeserver.start(options.port)
    ann = homeserver.person("Ann")
    _say(f"{section_of(homeserver.settings)}\n{HELP}")
    watching = asyncio.create_task(_watch(homeserver, ann))
    try:
        async for line in typed_lines():
            command, _, rest = line.partition(" ")
            if command == "quit":
                break
            await _do(ann, command, rest)
    finally:
        watching.cancel()
        await homeserver.stop()


async def _do(ann: Person, command: str, rest: str) -> None:
    commands: dict[str, Callable[[], Awaitable[object]]] = {
        "start": ann.start,
        "open": lambda: ann.open(rest),
        "write": lambda: ann.write(rest),
        "reply": lambda: ann.reply(ann.messages[-1].event_id, rest),
        "edit": lambda: ann.edit(rest),
        "kick": ann.kick,
        "block": ann.ban,
        "leave": ann.leave,
        "rejoin": ann.rejoin,
    }
    try:
        await commands[command]()
    except (KeyError, LookupError, ValueError) as error:
        _say(f"{error}\n" if command in commands else HELP)


async def _watch(homeserver: FakeMatrix, ann: Person) -> None:
    seen: dict[str, object] = {}
    while True:
        await homeserver.changed()
        try:
            messages = ann.messages
        except LookupError:
            continue  # an event of a room without Ann
        for message in messages:
            if seen.get(message.event_id) != message:
                seen[message.event_id] = message
                what = f"[{message.msgtype}] " if message.url else ""
                _say(f"bot> {what}{message.text}\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
