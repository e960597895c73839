"""`python -m msgsvc_devkit.platforms.telegram`: a local Bot API, with a user controlled from standard
input."""

import argparse
from collections.abc import Mapping

from msgsvc_devkit.keyboard import Command, converse, run_by_hand, section_of, show
from msgsvc_devkit.platforms.telegram.chats import ShownMessage
from msgsvc_devkit.platforms.telegram.limits import Limits
from msgsvc_devkit.platforms.telegram.people import Person
from msgsvc_devkit.platforms.telegram.server import FakeTelegram

DEFAULT_PORT = 8081
DEFAULT_TOKEN = "7000000000:fake-token-for-trying-things-out"

HELP = """\
start [payload]   press Start, after a link with a payload
open <link>       the same, with a link to the bot
press <label>     press a button
block, unblock    stop the bot, and let it write again
anything else     is written to the bot
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m msgsvc_devkit.platforms.telegram", description=__doc__
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT)
    parser.add_argument("--token", default=DEFAULT_TOKEN)
    parser.add_argument("--limits", action="store_true", help="keep Telegram's limits: 429 beyond")
    parser.add_argument("--name", default="Anna", help="who you are")
    options = parser.parse_args()
    run_by_hand(_serve(options), parser, options.port)


async def _serve(options: argparse.Namespace) -> None:
    limits = Limits() if options.limits else None
    async with FakeTelegram(port=options.port, token=options.token, limits=limits) as telegram:
        person = telegram.person(options.name)
        settings = {"plugin": "telegram", "token": options.token, "base_url": telegram.url}
        show(f"A Bot API for trying things out. In msgsvc.toml:\n\n{section_of(settings)}\n{HELP}")
        await converse(_commands(person), _show(person), HELP)


def _commands(person: Person) -> Mapping[str, Command]:
    async def press(label: str) -> None:
        pressed = await person.press(label, person.messages[-1] if person.messages else None)
        show(f"  ({await pressed.answered() or 'answered without a notice'})\n")

    async def write(text: str) -> None:
        if text:
            await person.write(text)

    return {
        "start": person.start,
        "open": person.open,
        "press": press,
        "block": lambda _: person.block(),
        "unblock": lambda _: person.unblock(),
        "": write,
    }


async def _show(person: Person) -> None:
    """Prints the bot's messages and edits as they arrive."""
    shown: dict[int, int] = {}
    while True:
        for message in person.messages:
            if shown.get(message.message_id) != message.edits:
                shown[message.message_id] = message.edits
                show(f"{_picture(message)}\n")
        await person.chat.change()


def _picture(message: ShownMessage) -> str:
    lines = [f"  bot{' (edited)' if message.edits else ''}: {message.text}"]
    if message.file:
        lines.append(f"    <{message.file.kind} {message.file.filename}>")
    lines += [
        "    " + " ".join(f"[{b['text']}]" + _target(b.get("url")) for b in row)
        for row in message.buttons
    ]
    return "\n".join(lines)


def _target(url: str | None) -> str:
    return f" -> {url}" if url else ""


if __name__ == "__main__":
    main()
