"""A provider's HTTP API for SMS: one call to send, webhooks for texts and receipts."""

import asyncio
import hashlib
import hmac
import json
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from aiohttp import ClientSession, web

from msgsvc_devkit.platforms.sms.people import Person
from msgsvc_devkit.web_servers import stop

#: The account's key, and the key of the signatures of its webhooks.
API_KEY, SIGNATURE_KEY = "fake-api-key-0123456789", "fake-signature-key-0123456789"

#: The number that messages are from, and that people write to.
SENDER = "+4915110000000"

#: How the next call is broken: see `msgsvc_devkit.Fault`.
Break = Literal["504", "garbage", "reset", "hang"]

_FIELDS = {"to", "from", "body", "reference"}


class FakeSmsProvider:
    """The provider on a free port of 127.0.0.1, in `async with`.

    `refusals` refuse the next calls with a status, a code and perhaps `Retry-After`; `breaks` break them.
    `webhook` is the address that it calls.
    """

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.revoked = False
        self.refusals: deque[tuple[int, str, float | None]] = deque()
        self.breaks: deque[Break] = deque()
        self.webhook = ""
        #: Statuses that the webhook answered with.
        self.answers: list[int] = []
        self.calls: list[dict[str, str]] = []
        self.port = 0
        self._ids = 0
        self._runner: web.AppRunner | None = None
        self._released = asyncio.Event()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The section `[channels.<name>]`."""
        return {
            "plugin": "sms_http",
            "url": f"http://127.0.0.1:{self.port}/v1/messages",
            "check_url": f"http://127.0.0.1:{self.port}/v1/balance",
            "headers": f"X-Api-Key: {API_KEY}",
            "body": '{"to": "{to}", "from": "{sender}", "body": "{text}", "reference": "{key}"}',
            "message_id": "message.id",
            "status": "error.code",
            "answers": "opted_out = user_blocked_bot, no_such_number = chat_not_found,"
            " other = unknown",
            "sender": SENDER,
            "allowed_prefixes": "+49, +7",
        }

    @property
    def inbound_settings(self) -> Mapping[str, Any]:
        """The same section, with the provider's signed webhooks."""
        return {
            **self.settings,
            "signature_header": "X-Signature",
            "signature_secret": SIGNATURE_KEY,
            "trusts_senders": True,
        }

    def person(self, name: str, number: str = "+4915120000001") -> Person:
        """Somebody with a telephone of that number."""
        return self.people.setdefault(number, Person(name, number))

    @staticmethod
    def signature(body: bytes) -> str:
        return hmac.new(SIGNATURE_KEY.encode(), body, hashlib.sha256).hexdigest()

    async def write(self, person: Person, text: str) -> None:
        """A person writes to the service."""
        self._ids += 1
        await self.tell({"id": f"in{self._ids}", "from": person.number, "text": text})

    async def receipt(self, message_id: str, status: str) -> None:
        """Reports on a message."""
        await self.tell({"message_id": message_id, "status": status})

    async def tell(self, content: object) -> None:
        """Calls the webhook, if there is one."""
        if not self.webhook:
            return
        body = json.dumps(content).encode()
        headers = {"Content-Type": "application/json", "X-Signature": self.signature(body)}
        async with (
            ClientSession() as client,
            client.post(self.webhook, data=body, headers=headers) as answer,
        ):
            self.answers.append(answer.status)

    # ---- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> "FakeSmsProvider":
        await self.restart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def restart(self) -> None:
        """Listens again, with what it had."""
        app = web.Application()
        app.add_routes(
            [web.post("/v1/messages", self._send), web.get("/v1/balance", self._balance)]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = site.port or self._runner.addresses[0][1]

    async def kill(self) -> None:
        """Closes the port and all connections at once."""
        self._released.set()
        self._released = asyncio.Event()
        if self._runner is not None:
            await stop(self._runner)
            self._runner = None

    # ---- calls ----------------------------------------------------------------------------------

    async def _send(self, request: web.Request) -> web.Response:
        if (refused := self._refused(request)) is not None:
            return refused
        try:
            content = await request.json()
        except ValueError:
            return _error(400, "no_json")
        if not isinstance(content, dict) or set(content) != _FIELDS:
            return _error(400, "wrong_fields")
        person = self.people.get(content["to"])
        if person is not None and person.opted_out:
            return _error(400, "opted_out")
        if person is not None and person.gone:
            return _error(400, "no_such_number")
        self.calls.append(content)
        self._ids += 1
        message_id = f"m{self._ids}"
        (person or self.person("", content["to"])).receive(
            message_id, content["from"], content["body"], None
        )
        return await self._answered(request, {"message": {"id": message_id}})

    async def _balance(self, request: web.Request) -> web.Response:
        if (refused := self._refused(request)) is not None:
            return refused
        return await self._answered(request, {"balance": "12.30"})

    def _refused(self, request: web.Request) -> web.Response | None:
        if self.refusals:
            return _error(*self.refusals.popleft())
        if self.revoked or request.headers.get("X-Api-Key") != API_KEY:
            return _error(401, "no_such_key")
        return None

    async def _answered(self, request: web.Request, content: object) -> web.Response:
        match self.breaks.popleft() if self.breaks else None:
            case "504":
                return web.Response(status=504, text="<h1>Gateway Timeout</h1>")
            case "garbage":
                return web.Response(text="{garbage", content_type="application/json")
            case "reset":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "hang":
                await self._released.wait()
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
        return web.json_response(content)


def _error(status: int, code: str, retry_after_s: float | None = None) -> web.Response:
    headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:.0f}"}
    return web.json_response({"error": {"code": code}}, status=status, headers=headers)
