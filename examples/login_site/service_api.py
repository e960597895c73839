"""The five calls of the msgsvc HTTP API that this site needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp

#: Seconds for one call in all. A person is waiting, so rather an honest error than a long wait.
TIMEOUT_S = 10


class ServiceError(Exception):
    """The service answered with its error envelope, or could not be reached at all.

    `code` is stable and meant for programs, `message` is meant for people; `retryable` says
    whether the same request may succeed later.
    """

    def __init__(self, message: str, code: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable


@dataclass(frozen=True)
class LoginSession:
    """A sign-in that waits for its Yes: links and QR images by channel."""

    session_id: str
    links: dict[str, str]
    qr: dict[str, str]
    expires_in: int
    interval: int


@dataclass(frozen=True)
class LoginStatus:
    """`status` is pending, confirmed, denied, expired or consumed; `code` comes with confirmed."""

    status: str
    code: str | None


@dataclass(frozen=True)
class VerifiedLogin:
    """Who confirmed, and which sign-in the code belonged to (`state` is None for a static link)."""

    subscriber_id: str
    channel: str
    first_name: str
    username: str
    state: str | None
    session_id: str | None


class MsgsvcClient:
    """Speaks to one project of the service; `http` belongs to the caller, who closes it."""

    def __init__(self, base_url: str, api_key: str, http: aiohttp.ClientSession) -> None:
        self._base_url = base_url
        self._authorization = {"Authorization": f"Bearer {api_key}"}
        self._http = http

    async def static_links(self, slug: str) -> dict[str, str]:
        """The permanent sign-in link of each channel."""
        answer = await self._call("GET", f"/v1/auth/links/{quote(slug, safe='')}")
        return dict(answer["links"])

    async def start_login(
        self,
        *,
        state: str,
        lang: str,
        callback_url: str | None = None,
    ) -> LoginSession:
        """Open a sign-in; `state` comes back with the code."""
        body: dict[str, Any] = {"state": state, "lang": lang}
        if callback_url is not None:
            body["callback_url"] = callback_url
        answer = await self._call("POST", "/v1/auth/session", body)
        return LoginSession(
            session_id=answer["session_id"],
            links=dict(answer["links"]),
            qr=dict(answer["qr"]),
            expires_in=int(answer["expires_in"]),
            interval=int(answer["interval"]),
        )

    async def login_status(self, session_id: str) -> LoginStatus:
        """How far the sign-in has come. Asking is free of side effects."""
        answer = await self._call("GET", f"/v1/auth/session/{quote(session_id, safe='')}/status")
        return LoginStatus(status=answer["status"], code=answer.get("code"))

    async def verify(self, code: str) -> VerifiedLogin:
        """Exchange a code for the person. Works once: a second exchange is `auth_code_used`."""
        answer = await self._call("POST", "/v1/auth/verify", {"code": code})
        return VerifiedLogin(
            subscriber_id=answer["subscriber_id"],
            channel=answer.get("channel") or "",
            first_name=answer.get("first_name") or "",
            username=answer.get("username") or "",
            state=answer.get("state") or None,
            session_id=answer.get("session_id"),
        )

    async def send(self, subscriber_id: str, text: str, *, idempotency_key: str) -> str:
        """Queue a message and return its id; the same key never sends twice within 24 hours."""
        body = {"subscriber_id": subscriber_id, "text": text}
        answer = await self._call(
            "POST", "/v1/send", body, headers={"Idempotency-Key": idempotency_key}
        )
        return str(answer["message_id"])

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        try:
            async with self._http.request(
                method,
                self._base_url + path,
                json=body,
                headers={**self._authorization, **(headers or {})},
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as response:
                answer = await response.json(content_type=None)
                status = response.status
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            # ValueError: a proxy in between answered with a page that is not JSON.
            raise ServiceError(
                "the sign-in service does not answer", "unreachable", retryable=True
            ) from error
        return _checked(status, answer)


def _checked(status: int, answer: object) -> dict[str, Any]:
    fields = answer if isinstance(answer, dict) else {}
    if status < 400 and fields:
        return fields
    raise ServiceError(
        str(fields.get("error", f"the sign-in service answered {status}")),
        str(fields.get("code", "unknown")),
        retryable=bool(fields.get("retryable", status >= 500)),
    )
