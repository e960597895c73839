"""Runs the fake for manual trials: `python -m msgsvc_devkit.platforms.max`."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable

from msgsvc_devkit.keyboard import run_by_hand, typed_lines
from msgsvc_devkit.platforms.max.people import Person
from msgsvc_devkit.platforms.max.platform import FakeMax

HELP = """\
You are Ann, who has not started the bot. What you can do, and what the bot says, is shown here:
  open LINK       opens a link to the bot       start [PAYLOAD]  presses Start
  write TEXT      writes to the bot             press LABEL      presses a button
  block           stops the bot                 quit
"""


def main() -> None:
    """Serves the fake until `quit`, end of input, or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A fake of the MAX platform, on this machine.")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--token", default="fake-token")
    options = parser.parse_args()
    run_by_hand(_serve(options), parser, options.port)


async def _serve(options: argparse.Namespace) -> None:
    platform = FakeMax(options.token)
    await platform.start(options.port)
    ann = platform.person("Ann", username="ann")
    _say(
        "[channels.messenger_a]\n"
        f'plugin = "max"\ntoken = "{platform.token}"\nbase_url = "{platform.url}"\n\n{HELP}'
    )
    watching = asyncio.create_task(_watch(platform, ann))
    try:
        async for line in typed_lines():
            command, _, rest = line.partition(" ")
            if command == "quit":
                break
            await _do(ann, command, rest)
    finally:
        watching.cancel()
        await platform.stop()


async def _do(ann: Person, command: str, rest: str) -> None:
    commands: dict[str, Callable[[], Awaitable[object]]] = {
        "open": lambda: ann.open(rest),
        "start": lambda: ann.start(rest or None),
        "write": lambda: ann.write(rest),
        "press": lambda: ann.press(rest),
        "block": ann.block,
    }
    try:
        await commands[command]()
    except (KeyError, LookupError, ValueError) as error:
        _say(f"{error}\n" if command in commands else HELP)


async def _watch(platform: FakeMax, ann: Person) -> None:
    seen: dict[str, object] = {}
    notices = 0
    while True:
        await platform.changed()
        for message in ann.messages:
            if seen.get(message.mid) != message:
                seen[message.mid] = message
                labels = [[one["text"] for one in row] for row in message.buttons]
                what = f"[{message.media}] " if message.media else ""
                _say(f"bot> {what}{message.text}  {labels or ''}\n")
        for notice in ann.notices[notices:]:
            _say(f"bot> ({notice or 'no notice'})\n")
        notices = len(ann.notices)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
