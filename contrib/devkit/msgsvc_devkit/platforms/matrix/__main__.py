"""Runs the fake for manual trials: `python -m msgsvc_devkit.platforms.matrix`."""

import argparse
from collections.abc import Mapping

from msgsvc_devkit.keyboard import Command, converse, run_by_hand, section_of, show
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
    show(f"{section_of(homeserver.settings)}\n{HELP}")
    try:
        await converse(_commands(ann), _watch(homeserver, ann), HELP)
    finally:
        await homeserver.stop()


def _commands(ann: Person) -> Mapping[str, Command]:
    return {
        "start": lambda _: ann.start(),
        "open": ann.open,
        "write": ann.write,
        "reply": lambda text: ann.reply(ann.messages[-1].event_id, text),
        "edit": ann.edit,
        "kick": lambda _: ann.kick(),
        "block": lambda _: ann.ban(),
        "leave": lambda _: ann.leave(),
        "rejoin": lambda _: ann.rejoin(),
    }


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
                show(f"bot> {what}{message.text}\n")


if __name__ == "__main__":
    main()
