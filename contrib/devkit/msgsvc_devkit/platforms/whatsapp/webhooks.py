"""Webhook calls of the fake: signed, one after the other, repeated until they succeed."""

import asyncio
import hmac
import json
import secrets
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout

from msgsvc_devkit.platforms.whatsapp.refusals import Refused

#: Seconds before each retry of a webhook call. The platform retries for 7 days, less and less often.
RETRY_WAITS_S = tuple(0.05 * 1.5**number for number in range(10))


class Webhooks:
    """Calls the address of the phone number's webhook, or the app's."""

    def __init__(self, app_secret: str) -> None:
        self._app_secret = app_secret
        #: The number's own address, and the app's, as it was entered in its dashboard.
        self.override: str = ""
        self.of_app: str = ""
        #: All bodies, as they were sent.
        self.all: list[dict[str, Any]] = []
        #: How often the platform sends each call, as if responses had been lost.
        self.repeats = 1
        #: Bodies that are held back; None if each is sent at once.
        self.held: list[dict[str, Any]] | None = None
        #: Statuses of the webhook's responses, in order; 0 is no response.
        self.answers: list[int] = []
        self._calls: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address that is called; empty if there is none."""
        return self.override or self.of_app

    async def verify(self, url: str, token: str) -> None:
        """Asks an address for the challenge. Raises `Refused` if it does not answer with that."""
        challenge = secrets.token_hex(8)
        query = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": token}
        try:
            async with (
                ClientSession(timeout=ClientTimeout(total=10)) as session,
                session.get(url, params=query) as answer,
            ):
                is_proven = answer.status == 200 and await answer.text() == challenge
        except (ClientError, TimeoutError):
            is_proven = False
        if not is_proven:
            raise Refused(
                400, 2200, "Callback verification failed", "HTTP status or challenge is wrong"
            )

    def tell(self, body: dict[str, Any]) -> None:
        """Calls the webhook with this body, after the earlier calls."""
        if self.held is not None:
            self.held.append(body)
            return
        self.all.append(body)
        if not self.url:
            return
        self._turn = asyncio.create_task(self._deliver(self.url, body, self._turn))
        self._calls.add(self._turn)
        self._turn.add_done_callback(self._calls.discard)

    def signature(self, body: bytes) -> str:
        """The value of `X-Hub-Signature-256`."""
        return "sha256=" + hmac.new(self._app_secret.encode(), body, "sha256").hexdigest()

    async def close(self) -> None:
        for call in list(self._calls):
            call.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _deliver(
        self, url: str, body: dict[str, Any], before: asyncio.Task[None] | None
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        for _ in range(self.repeats):
            await self._call(url, json.dumps(body).encode())

    async def _call(self, url: str, body: bytes) -> None:
        headers = {
            "Content-Type": "application/json",
            "X-Hub-Signature-256": self.signature(body),
            "User-Agent": "facebookexternalua",
        }
        async with ClientSession(timeout=ClientTimeout(total=30)) as session:
            for wait_s in (*RETRY_WAITS_S, None):
                status = 0
                try:
                    async with session.post(url, data=body, headers=headers) as answer:
                        status = answer.status
                except (ClientError, TimeoutError):
                    pass
                self.answers.append(status)
                if status == 200 or wait_s is None:
                    return
                await asyncio.sleep(wait_s)
