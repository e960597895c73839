"""A fake of the service's API: the calls that the site makes, answered from memory."""

from __future__ import annotations

import base64
import secrets
from typing import Any

from aiohttp import web

API_KEY = "msk_test"
CHANNELS = ("messenger_a", "messenger_b")


def secret_of(text: bytes) -> str:
    """A secret as the service shows one."""
    return f"whsec_{base64.b64encode(text.ljust(32)).decode()}"


SECRET = secret_of(b"ours")


class FakeService:
    """The four calls the site makes, and what the messenger would do to a session."""

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, Any]] = {}
        self.sent: list[dict[str, Any]] = []
        self.app = web.Application(middlewares=[self._authenticated])
        self.app.add_routes(
            [
                web.post("/v1/auth/session", self._open),
                web.get("/v1/auth/session/{id}/status", self._status),
                web.post("/v1/auth/verify", self._verify),
                web.post("/v1/send", self._send),
            ]
        )

    def press_yes(self, session_id: str, first_name: str) -> str:
        """Confirm a session in the messenger; returns the code."""
        session = self.sessions[session_id]
        session["status"] = "confirmed"
        session["code"] = self.code_for(first_name, session_id, session["state"])
        return str(session["code"])

    def press_cancel(self, session_id: str) -> None:
        self.sessions[session_id]["status"] = "denied"

    def code_for(self, first_name: str, session_id: str, state: str = "") -> str:
        """A code as a confirmation makes it; without a state it is a static link's."""
        code = secrets.token_urlsafe(32)
        self.codes[code] = {
            "subscriber_id": f"sub_{first_name}",
            "channel": "messenger_a",
            "first_name": first_name,
            "username": first_name.lower(),
            "lang": "en",
            "tags": [],
            "external_id": None,
            "state": state,
            "session_id": session_id,
            "auth_time": "2026-11-05T10:00:00Z",
        }
        return code

    @web.middleware
    async def _authenticated(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {API_KEY}":
            return refusal(401, "invalid_api_key", "the API key is wrong")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _open(self, request: web.Request) -> web.Response:
        session_id = f"ses_{secrets.token_hex(8)}"
        self.sessions[session_id] = {"status": "pending", **await request.json()}
        base = f"https://chat.test/{session_id}"
        answer = {
            "session_id": session_id,
            "status": "pending",
            "links": {channel: f"{base}/{channel}" for channel in CHANNELS},
            "qr": {channel: f"{base}/{channel}.svg" for channel in CHANNELS},
            "match_number": 47,
            "expires_in": 600,
            "interval": 2,
        }
        return web.json_response(answer, status=201)

    async def _status(self, request: web.Request) -> web.Response:
        session_id = request.match_info["id"]
        session = self.sessions[session_id]
        known = {key: session.get(key) for key in ("status", "state", "code")}
        return web.json_response({"session_id": session_id, "expires_in": 500, **known})

    async def _verify(self, request: web.Request) -> web.Response:
        person = self.codes.pop((await request.json())["code"], None)
        if person is None:
            return refusal(400, "auth_code_invalid", "code: no such <code>")
        return web.json_response(person)

    async def _send(self, request: web.Request) -> web.Response:
        key = request.headers["Idempotency-Key"]
        self.sent.append({"key": key, **await request.json()})
        return web.json_response({"message_id": "msg_1", "status": "queued"}, status=202)


def refusal(status: int, code: str, message: str) -> web.Response:
    envelope = {"error": message, "code": code, "retryable": False, "docs_url": f"/errors#{code}"}
    return web.json_response(envelope, status=status)
