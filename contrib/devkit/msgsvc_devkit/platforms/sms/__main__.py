"""Runs the fake message centre for manual trials: `python -m msgsvc_devkit.platforms.sms`."""

import argparse
import asyncio
from collections.abc import Mapping
from urllib.parse import unquote

from msgsvc_devkit.keyboard import Command, converse, run_by_hand, section_of, show
from msgsvc_devkit.platforms.sms.centre import SENDER, FakeSmsCentre
from msgsvc_devkit.platforms.sms.people import Person

HELP = """\
You are Ann, with a telephone: {number}. What you can do, and what arrives, is shown here:
  write TEXT      writes to the service         open LINK        writes what an sms: link holds
  stop, start     has the carrier keep messages of the service from you, or let them through again
  off, on         switches the telephone off: there are no receipts
  quit
"""


def main() -> None:
    """Serves the fake until `quit`, end of input, or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A fake SMPP message centre, on this machine.")
    parser.add_argument("--port", type=int, default=8093)
    options = parser.parse_args()
    run_by_hand(_serve(options), parser, options.port)


async def _serve(options: argparse.Namespace) -> None:
    centre = FakeSmsCentre()
    centre.port = options.port
    async with centre:
        ann = centre.person("Ann")
        help_text = HELP.format(number=ann.number)
        show(f"{section_of(centre.settings)}\n{help_text}")
        await converse(_commands(centre, ann), _watch(ann), help_text)


def _commands(centre: FakeSmsCentre, ann: Person) -> Mapping[str, Command]:
    def write(text: str) -> None:
        # As telephones do it: 140 octets are one message, less the header of its parts.
        centre.write(ann, text, part_octets=134)

    def open_link(link: str) -> None:
        start = f"sms:{SENDER}?body="
        if not link.startswith(start):
            raise ValueError("that is no sms: link to the service")
        write(unquote(link.removeprefix(start)))

    def opt(word: str, *, out: bool) -> None:
        ann.opted_out = out
        centre.write(ann, word)

    def switch(*, off: bool) -> None:
        ann.is_off = off

    return {
        "write": write,
        "open": open_link,
        "stop": lambda _: opt("STOP", out=True),
        "start": lambda _: opt("START", out=False),
        "off": lambda _: switch(off=True),
        "on": lambda _: switch(off=False),
    }


async def _watch(ann: Person) -> None:
    seen = 0
    while True:
        for text in ann.messages[seen:]:
            parts = f" ({text.parts} parts)" if text.parts > 1 else ""
            show(f"{text.sender}> {text.text}{parts}\n")
        seen = len(ann.messages)
        # The centre has no notice of it for people, who look at the screen a few times a second.
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    main()
