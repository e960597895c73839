"""The letterbox keeps the contract of channels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser, MediaType, OutgoingMessage, Reason
from msgsvc_devkit import ChannelContract, Fault, Messenger, Shown, cannot
from msgsvc_letterbox import plugin

LINK = "letterbox:messenger_a?start="


class Reader(Messenger):
    """The person who empties the outbox and fills the inbox."""

    user = ChannelUser("ann", "Ann", lang="ru")
    chat_id = "ann"

    def __init__(self, folder: Path) -> None:
        self.settings = {"folder": str(folder), "poll_s": 0.01}
        self._folder = folder
        self._count = 0

    def _put(self, **update: Any) -> None:
        self._count += 1
        if update["kind"] == "text":
            self._written = f"{self._count:06}"
        path = self._folder / "inbox" / f"{self._count:06}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".new")
        new.write_text(json.dumps({"user": "ann", "name": "Ann", "lang": "ru", **update}))
        new.rename(path)

    async def follow(self, link: str) -> None:
        if not link.startswith(LINK):
            raise ValueError(f"it does not begin with {LINK}")
        self._put(kind="start", payload=link.removeprefix(LINK))

    async def start(self, payload: str = "") -> None:
        self._put(kind="start", payload=payload)

    async def write(self, text: str) -> None:
        self._put(kind="text", text=text)

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        path = self._folder / "files" / filename
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        self._put(kind="text", text=text, files=[filename])

    async def edit_text(self, text: str) -> None:
        self._put(kind="edit", ref=self._written, text=text)

    async def reply(self, ref: str, text: str) -> None:
        self._put(kind="text", text=text, answers=ref)

    async def press(self, ref: str, data: str) -> None:
        self._put(kind="button", data=data, ref=ref)

    async def block(self) -> None:
        (self._folder / "blocked.txt").write_text("ann\n")
        self._put(kind="block")

    async def unblock(self) -> None:
        (self._folder / "blocked.txt").unlink()
        self._put(kind="unblock")

    async def shown(self) -> Sequence[Shown]:
        letters = sorted((self._folder / "outbox").glob("*.json"))
        return [_shown(path.stem, json.loads(path.read_text())) for path in letters]

    async def notices(self) -> Sequence[str]:
        return [path.read_text() for path in sorted((self._folder / "answers").iterdir())]

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        cannot("a folder refuses nothing by itself")

    async def break_next(self, fault: Fault) -> None:
        cannot("there is no connection to a folder that could break")

    async def kill(self) -> None:
        cannot("a folder has no server")

    async def restart(self) -> None:
        cannot("a folder has no server")

    async def revoke(self) -> None:
        cannot("a folder asks for no token")

    async def puzzle(self) -> None:
        self._put(kind="dance")
        self._put(user=None, kind=[])


def _shown(ref: str, letter: dict[str, Any]) -> Shown:
    message = OutgoingMessage.from_payload(letter)
    return Shown(ref, message.text, message.buttons, silent=message.silent)


class TestLetterbox(ChannelContract):
    plugin = plugin
    kind = "letterbox"

    @pytest.fixture
    async def messenger(self, tmp_path: Path) -> Messenger:
        return Reader(tmp_path / "letterbox")
