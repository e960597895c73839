"""Runs the fake message centre for manual trials: `python -m msgsvc_devkit.platforms.sms`."""

import argparse
import asyncio
import sys
from urllib.parse import unquote

from msgsvc_devkit.keyboard import run_by_hand, section_of, typed_lines
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
        _say(f"{section_of(centre.settings)}\n{HELP.format(number=ann.number)}")
        watching = asyncio.create_task(_watch(ann))
        try:
            async for line in typed_lines():
                command, _, rest = line.partition(" ")
                if command == "quit":
                    break
                _do(centre, ann, command, rest)
        finally:
            watching.cancel()


def _do(centre: FakeSmsCentre, ann: Person, command: str, rest: str) -> None:
    match command:
        case "write":
            # As telephones do it: 140 octets are one message, less the header of its parts.
            centre.write(ann, rest, part_octets=134)
        case "open" if rest.startswith(f"sms:{SENDER}?body="):
            centre.write(ann, unquote(rest.partition("?body=")[2]), part_octets=134)
        case "stop" | "start":
            ann.opted_out = command == "stop"
            centre.write(ann, command.upper())
        case "off" | "on":
            ann.is_off = command == "off"
        case _:
            _say(HELP.format(number=ann.number))


async def _watch(ann: Person) -> None:
    seen = 0
    while True:
        for text in ann.messages[seen:]:
            parts = f" ({text.parts} parts)" if text.parts > 1 else ""
            _say(f"{text.sender}> {text.text}{parts}\n")
        seen = len(ann.messages)
        # The centre has no notice of it for people, who look at the screen a few times a second.
        await asyncio.sleep(0.2)


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
