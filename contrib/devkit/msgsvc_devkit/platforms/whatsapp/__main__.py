"""Runs the fake for manual trials: `python -m msgsvc_devkit.platforms.whatsapp`."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable

from msgsvc_devkit.keyboard import run_by_hand, typed_lines
from msgsvc_devkit.platforms.whatsapp.people import Person
from msgsvc_devkit.platforms.whatsapp.platform import FakeWhatsApp

HELP = """\
You are Ann, who has not written yet. What you can do, and what the business says, is shown here:
  open LINK       opens a link to the chat      start [PAYLOAD]  writes what a link would
  write TEXT      writes to the business        press LABEL      presses a button
  stop            stops marketing messages      block            blocks the business
  wait HOURS      lets hours pass               quit
"""


def main() -> None:
    """Serves the fake until `quit`, end of input, or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A fake of WhatsApp's Cloud API, on this machine.")
    parser.add_argument("--port", type=int, default=8091)
    parser.add_argument("--token", default="fake-token")
    options = parser.parse_args()
    run_by_hand(_serve(options), parser, options.port)


async def _serve(options: argparse.Namespace) -> None:
    platform = FakeWhatsApp(options.token)
    platform.templates["notice", "en"] = "News for you: {{1}}. Answer to write with us."
    await platform.start(options.port)
    ann = platform.person("Ann", username="ann")
    settings = "".join(f'{name} = "{value}"\n' for name, value in platform.settings.items())
    _say(f'[channels.messenger_a]\n{settings}template = "notice"\n\n{HELP}')
    watching = asyncio.create_task(_watch(platform, ann))
    try:
        async for line in typed_lines():
            command, _, rest = line.partition(" ")
            if command == "quit":
                break
            await _do(platform, ann, command, rest)
    finally:
        watching.cancel()
        await platform.stop()


async def _do(platform: FakeWhatsApp, ann: Person, command: str, rest: str) -> None:
    async def wait() -> None:
        platform.pass_time(float(rest))

    commands: dict[str, Callable[[], Awaitable[object]]] = {
        "open": lambda: ann.open(rest),
        "start": lambda: ann.start(rest),
        "write": lambda: ann.write(rest),
        "press": lambda: ann.press(rest),
        "stop": ann.opt_out,
        "block": ann.block,
        "wait": wait,
    }
    try:
        await commands[command]()
    except (KeyError, LookupError, ValueError) as error:
        _say(f"{error}\n" if command in commands else HELP)


async def _watch(platform: FakeWhatsApp, ann: Person) -> None:
    seen = 0
    while True:
        await platform.changed()
        for message in ann.messages[seen:]:
            labels = [button.about or button.label for button in message.buttons]
            what = (
                f"[{message.template or message.media}] "
                if message.template or message.media
                else ""
            )
            _say(f"bot> {what}{message.text}  {labels or ''}\n")
        seen = len(ann.messages)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
