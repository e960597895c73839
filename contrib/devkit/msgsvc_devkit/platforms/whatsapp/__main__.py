"""Runs the fake for manual trials: `python -m msgsvc_devkit.platforms.whatsapp`."""

import argparse
from collections.abc import Mapping

from msgsvc_devkit.keyboard import Command, converse, run_by_hand, show
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
    show(f'[channels.messenger_a]\n{settings}template = "notice"\n\n{HELP}')
    try:
        await converse(_commands(platform, ann), _watch(platform, ann), HELP)
    finally:
        await platform.stop()


def _commands(platform: FakeWhatsApp, ann: Person) -> Mapping[str, Command]:
    return {
        "open": ann.open,
        "start": ann.start,
        "write": ann.write,
        "press": ann.press,
        "stop": lambda _: ann.opt_out(),
        "block": lambda _: ann.block(),
        "wait": lambda hours: platform.pass_time(float(hours)),
    }


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
            show(f"bot> {what}{message.text}  {labels or ''}\n")
        seen = len(ann.messages)


if __name__ == "__main__":
    main()
