"""Runs the fake for manual trials: `python -m msgsvc_devkit.platforms.max`."""

import argparse
from collections.abc import Mapping

from msgsvc_devkit.keyboard import Command, converse, run_by_hand, show
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
    show(
        "[channels.messenger_a]\n"
        f'plugin = "max"\ntoken = "{platform.token}"\nbase_url = "{platform.url}"\n\n{HELP}'
    )
    try:
        await converse(_commands(ann), _watch(platform, ann), HELP)
    finally:
        await platform.stop()


def _commands(ann: Person) -> Mapping[str, Command]:
    return {
        "open": ann.open,
        "start": lambda payload: ann.start(payload or None),
        "write": ann.write,
        "press": ann.press,
        "block": lambda _: ann.block(),
    }


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
                show(f"bot> {what}{message.text}  {labels or ''}\n")
        for notice in ann.notices[notices:]:
            show(f"bot> ({notice or 'no notice'})\n")
        notices = len(ann.notices)


if __name__ == "__main__":
    main()
