"""A Synapse that runs, and its users, who call it as their clients do."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import httpx2

from msgsvc_devkit import until
from tests.oidc_clients.programs import python, serving
from tests.ports import free_ports

TEMPLATE = Path(__file__).with_name("homeserver.yaml")

LOG_CONFIG = """\
version: 1
handlers: {console: {class: logging.StreamHandler, stream: ext://sys.stderr}}
root: {level: WARNING, handlers: [console]}
disable_existing_loggers: false
"""

#: Of a homeserver that talks with no other: its own command for making one takes seconds.
SIGNING_KEY = f"ed25519 a_test {'A' * 43}\n"

SHARED_SECRET = b"for-tests-only"
PASSWORD = "a password"

_NUMBERS = count(1)


@dataclass(slots=True)
class Said:
    """A message as a client shows it."""

    event_id: str
    sender: str
    content: dict[str, Any]
    edited: bool

    @property
    def text(self) -> str:
        return str(self.content["body"])


@dataclass(slots=True)
class User:
    """A user with their client."""

    homeserver: "Homeserver"
    user_id: str
    token: str
    room_id: str = ""
    _seen: dict[str, tuple[list[dict[str, Any]], str]] = field(default_factory=dict)

    async def call(self, method: str, path: str, body: Any = None, **params: str) -> dict[str, Any]:
        """A call of the client-server API, which must succeed."""
        answer = await self.homeserver.client.request(
            method,
            path if path.startswith("/") else f"/_matrix/client/v3/{path}",
            json=body if body is not None or method == "GET" else {},
            params=params,
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert answer.is_success, f"{method} {path}: {answer.text}"
        found: dict[str, Any] = answer.json()
        return found

    async def start(
        self, bot: "User", *, direct: bool = True, encrypted: bool = False, trusted: bool = True
    ) -> None:
        """Opens a chat with a bot. A client gives it equal rights in a direct chat (`trusted`): then nobody
        can remove the other."""
        algorithm = {"algorithm": "m.megolm.v1.aes-sha2"}
        state = [{"type": "m.room.encryption", "state_key": "", "content": algorithm}]
        made = await self.call(
            "POST",
            "createRoom",
            {
                "preset": "trusted_private_chat" if trusted else "private_chat",
                "invite": [bot.user_id],
                "is_direct": direct,
                "initial_state": state if encrypted else [],
            },
        )
        self.room_id = made["room_id"]

    async def write(
        self, text: str, msgtype: str = "m.text", fields: Mapping[str, Any] = MappingProxyType({})
    ) -> str:
        """Sends a message; the event's id."""
        return await self.send({"msgtype": msgtype, "body": text, **fields})

    async def send(self, content: dict[str, Any], kind: str = "m.room.message") -> str:
        path = f"rooms/{quote(self.room_id)}/send/{kind}/t{next(_NUMBERS)}"
        return str((await self.call("PUT", path, content))["event_id"])

    async def edit(self, event_id: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        relates = {"rel_type": "m.replace", "event_id": event_id}
        fields = {"m.new_content": new, "m.relates_to": relates}
        return await self.write(f"* {text}", fields=fields)

    async def upload(self, content: bytes, mime_type: str, filename: str) -> str:
        """The URI of a file that the homeserver keeps."""
        answer = await self.homeserver.client.post(
            "/_matrix/media/v3/upload",
            content=content,
            params={"filename": filename},
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": mime_type},
        )
        return str(answer.raise_for_status().json()["content_uri"])

    async def download(self, uri: str) -> bytes:
        answer = await self.homeserver.client.get(
            f"/_matrix/client/v1/media/download/{uri.removeprefix('mxc://')}",
            headers={"Authorization": f"Bearer {self.token}"},
        )
        return answer.raise_for_status().content

    async def change_room(self, what: str, body: Any = None) -> None:
        """`join`, `leave`, `kick`, `ban` or `invite`."""
        await self.call("POST", f"rooms/{quote(self.room_id)}/{what}", body or {})

    async def events(self) -> list[dict[str, Any]]:
        """The room's events, oldest first, as they are now."""
        self._seen.pop(self.room_id, None)
        return await self._events()

    async def _events(self) -> list[dict[str, Any]]:
        """The room's events, oldest first, as they were when they were first read."""
        found, start = self._seen.get(self.room_id, ([], ""))
        while True:
            more = {"from": start} if start else {}
            path = f"rooms/{quote(self.room_id)}/messages"
            page = await self.call("GET", path, None, dir="f", limit="500", **more)
            found = found + page["chunk"]
            if "end" not in page:
                break
            start = page["end"]
        self._seen[self.room_id] = found[: len(found) - len(page["chunk"])], start
        return found

    async def messages(self) -> list[Said]:
        """The messages of others as a client shows them, oldest first."""
        events = await self._events()
        shown: dict[str, Said] = {}
        redacted = {event.get("redacts") or event["content"].get("redacts") for event in events}
        for event in events:
            content = event["content"]
            if event["type"] != "m.room.message" or event["sender"] == self.user_id or not content:
                continue
            relates = content.get("m.relates_to", {})
            if relates.get("rel_type") != "m.replace":
                shown[event["event_id"]] = Said(event["event_id"], event["sender"], content, False)
            elif relates["event_id"] in shown:
                said = shown[relates["event_id"]]
                said.content, said.edited = content["m.new_content"], True
            elif relates["event_id"] in redacted:
                # As by clients that know no edits.
                shown[event["event_id"]] = Said(event["event_id"], event["sender"], content, False)
        return [said for said in shown.values() if said.event_id not in redacted]

    async def reads(self, text: str) -> Said:
        """The latest message with `text`, waited for."""

        async def found() -> Said | None:
            said = [one for one in await self.messages() if text in one.text]
            return said[-1] if said else None

        said = await until(found, interval_s=0.1)
        assert said is not None
        return said


@dataclass(slots=True)
class Homeserver:
    """A homeserver of the name `matrix.example`."""

    url: str
    client: httpx2.AsyncClient
    admin: User | None = None

    async def user(self, name: str = "ann", *, admin: bool = False, limited: bool = False) -> User:
        """A new user. The limit of messages does not apply to them, unless `limited`."""
        localpart = f"{name.lower()}{next(_NUMBERS)}"
        path = "/_synapse/admin/v1/register"
        nonce = (await self.client.get(path)).raise_for_status().json()["nonce"]
        role = "admin" if admin else "notadmin"
        signed = "\0".join((nonce, localpart, PASSWORD, role)).encode()
        answer = await self.client.post(
            path,
            json={
                "nonce": nonce,
                "username": localpart,
                "displayname": name.capitalize(),
                "password": PASSWORD,
                "admin": admin,
                "mac": hmac.digest(SHARED_SECRET, signed, hashlib.sha1).hex(),
            },
        )
        made = answer.raise_for_status().json()
        user = User(self, made["user_id"], made["access_token"])
        if not limited and not admin:
            assert self.admin is not None
            await self.admin.call(
                "POST", f"/_synapse/admin/v1/users/{quote(user.user_id)}/override_ratelimit", {}
            )
        return user


@asynccontextmanager
async def homeserver(folder: Path) -> AsyncIterator[Homeserver]:
    """A homeserver while the block runs. Skips the test where Synapse is not installed."""
    interpreter, port = python("synapse"), free_ports()
    url = f"http://127.0.0.1:{port}"
    (folder / "log.yaml").write_text(LOG_CONFIG)
    (folder / "signing.key").write_text(SIGNING_KEY)
    config = folder / "homeserver.yaml"
    config.write_text(TEMPLATE.read_text().format(folder=folder, url=url, port=port))
    command = (interpreter, "-m", "synapse.app.homeserver", "--config-path", config)
    async with (
        serving(command, folder / "synapse.log", f"{url}/health"),
        httpx2.AsyncClient(base_url=url, timeout=30) as client,
    ):
        found = Homeserver(url, client)
        found.admin = await found.user("admin", admin=True)
        yield found
