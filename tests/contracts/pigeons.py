"""A messenger in memory: the platform that the pigeon's channel talks to."""

import asyncio
import hmac
import json
from typing import Any

import aiohttp

from msgsvc_core.content.markup import utf16_length
from msgsvc_devkit import Fault

TOKEN = "pigeon-token-2f9d81c04e"
HEADER, SIGNATURE = "x-pigeon-secret", "x-pigeon-signature"
MAX_TEXT, MAX_CAPTION, MAX_TITLE = 4096, 1024, 100
PERSON = {"id": "4711", "name": "Ann", "username": "ann_b", "lang": "ru"}


def signature_of(body: bytes) -> str:
    """What the platform signs a webhook call with, besides naming the secret."""
    return hmac.new(TOKEN.encode(), body, "sha256").hexdigest()


class Pigeons:
    """The platform: takes calls as (method, fields), and answers with a status and a body."""

    def __init__(self) -> None:
        self.messages: dict[int, dict[str, Any]] = {}
        self.updates: list[dict[str, Any]] = []
        self.notices: list[str] = []
        #: What the menu shows, by language; "" is for everybody else.
        self.menus: dict[str, dict[str, str]] = {}
        #: What people sent, by its id, in base64.
        self.files: dict[str, str] = {}
        self.presses: set[str] = set()
        self.chats: set[str] = set()
        #: Messages by the keys that they were sent under.
        self.keys: dict[str, int] = {}
        self.threads: set[str] = set()
        self.blocked = self.revoked = False
        #: Set while there is no server.
        self.dead = asyncio.Event()
        self.next_failure: tuple[str, float | None] | Fault | None = None
        self._webhook: tuple[str, str] | None = None
        self._arrived = asyncio.Event()
        self._count = 0

    def number(self) -> int:
        self._count += 1
        return self._count

    async def call(self, token: str, method: str, **fields: Any) -> tuple[int, bytes]:
        if self.dead.is_set():
            raise ConnectionRefusedError(f"https://pigeon.example/{token}/{method}")
        failure, self.next_failure = self.next_failure, None
        await asyncio.sleep(0)
        if failure == "5xx":
            return 502, b"<html>Bad gateway</html>"
        if isinstance(failure, tuple):
            return refused(*failure)
        answer = await self._done(token, method, **fields)
        if failure == "hang":
            await self.dead.wait()
        if failure in {"hang", "reset"}:
            raise ConnectionResetError(f"https://pigeon.example/{token}/{method}")
        if failure == "504":
            return 504, b"<html>Gateway time-out</html>"
        if failure == "garbage":
            return 200, b"<html>Welcome</html>"
        return answer

    async def _done(self, token: str, method: str, **fields: Any) -> tuple[int, bytes]:
        if self.revoked or token != TOKEN:
            return refused("banned")
        return await getattr(self, f"_{method}")(**fields)

    async def tell(self, kind: str, **fields: Any) -> None:
        """An update, by webhook or kept for who polls."""
        update = {"id": self.number(), "kind": kind, "from": PERSON, **fields}
        if self._webhook is None:
            self.updates.append(update)
            self._arrived.set()
            return
        url, secret = self._webhook
        async with aiohttp.ClientSession() as session:
            body = json.dumps(update).encode()
            headers = {HEADER: secret, SIGNATURE: signature_of(body)}
            await session.post(url, data=body, headers=headers)

    async def _me(self) -> tuple[int, bytes]:
        return ok({"name": "Pigeon", "username": "pigeon_bot"})

    async def _send(
        self, chat: str, body: dict[str, Any], key: str | None = None
    ) -> tuple[int, bytes]:
        if key is not None and key in self.keys:
            return ok(self.keys[key])
        if chat not in self.chats:
            return refused("no_chat")
        if self.blocked:
            return refused("blocked")
        longest = MAX_CAPTION if body["media"] else MAX_TEXT
        if utf16_length(body["text"]) > longest:
            return refused("invalid")
        if body["thread"] is not None and body["thread"] not in self.threads:
            return refused("no_thread")
        number = self.number()
        self.messages[number] = body
        if key is not None:
            self.keys[key] = number
        return ok(number)

    async def _thread(self, chat: str, title: str) -> tuple[int, bytes]:
        if chat not in self.chats:
            return refused("no_chat")
        if not 1 <= len(title) <= MAX_TITLE:
            return refused("invalid")
        thread = f"t{self.number()}"
        self.threads.add(thread)
        return ok(thread)

    async def _edit(self, ref: str, body: dict[str, Any]) -> tuple[int, bytes]:
        old = self.messages.get(int(ref))
        if old is None:
            return refused("gone")
        if (old["text"], old["buttons"]) == (body["text"], body["buttons"]):
            return refused("not_modified")
        self.messages[int(ref)] = {**body, "media": old["media"], "thread": old["thread"]}
        return ok(None)

    async def _delete(self, ref: str) -> tuple[int, bytes]:
        return ok(None) if self.messages.pop(int(ref), None) else refused("gone")

    async def _answer(self, press: str, text: str | None) -> tuple[int, bytes]:
        if press not in self.presses:
            return refused("too_old")
        self.presses.remove(press)
        self.notices.append(text or "")
        return ok(None)

    async def _file(self, ref: str) -> tuple[int, bytes]:
        content = self.files.get(ref)
        return refused("gone") if content is None else ok(content)

    async def _commands(self, menus: dict[str, dict[str, str]]) -> tuple[int, bytes]:
        self.menus = menus
        return ok(None)

    async def _webhook_is(self, url: str | None, secret: str = "") -> tuple[int, bytes]:
        self._webhook = (url, secret) if url else None
        return ok(None)

    async def _updates(self, after: int) -> tuple[int, bytes]:
        if self._webhook:
            return refused("conflict")
        self.updates = [update for update in self.updates if update["id"] > after]
        while not self.updates:
            self._arrived.clear()
            await self._arrived.wait()
        return ok(self.updates)


def ok(result: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"ok": True, "result": result}).encode()


def refused(code: str, retry_after_s: float | None = None) -> tuple[int, bytes]:
    more = {} if retry_after_s is None else {"retry_after": retry_after_s}
    return 400, json.dumps({"ok": False, "code": code, **more}).encode()
